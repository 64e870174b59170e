<?php
// predis.php PORT - asks the module by Predis: by its typed calls where it has them (from 2.1 on), else
// by raw commands; and prints one line for each answer.  It ends with status 1 at the first error.
require 'Predis/autoload.php';

$client = new Predis\Client(['host' => '127.0.0.1', 'port' => (int) $argv[1]]);
$typed = class_exists('Predis\Command\Redis\BloomFilter\BFADD');

function call($name, ...$words)
{
    global $client, $typed;
    $method = strtolower(str_replace('.', '', $name));
    $answer = $typed ? $client->$method(...$words) : $client->executeRaw([$name, ...array_map('strval', $words)], $error);
    if (!$typed && $error)
        throw new Exception((string) $answer);
    return $answer;
}

function say($name, $answer)
{
    $numbers = array_map('intval', (array) $answer);
    echo strtolower($name), ' ', is_array($answer) ? json_encode(array_values($numbers)) : $numbers[0], "\n";
}

try {
    call('BF.RESERVE', 'b', 0.01, 100);
    say('BF.ADD', call('BF.ADD', 'b', 'a'));
    say('BF.MADD', call('BF.MADD', 'b', 'a', 'c'));
    say('BF.EXISTS', call('BF.EXISTS', 'b', 'a'));
    say('BF.MEXISTS', call('BF.MEXISTS', 'b', 'a', 'nobody'));
    $info = call('BF.INFO', 'b');
    echo 'bf.info ', count($info), "\n";
    call('CF.RESERVE', 'c', 1000);
    say('CF.ADD', call('CF.ADD', 'c', 'a'));
    say('CF.ADDNX', call('CF.ADDNX', 'c', 'a'));
    say('CF.COUNT', call('CF.COUNT', 'c', 'a'));
    say('CF.DEL', call('CF.DEL', 'c', 'a'));
} catch (Exception $error) {
    echo 'error: ', $error->getMessage(), "\n";
    exit(1);
}
