# From what "ctest --output-junit" wrote, the results that stages.sh wants; -v stage=, folder=.
function text_of(line) {
    gsub(/<[^>]*>|^[ \t]+/, "", line)
    gsub(/&lt;/, "<", line)
    gsub(/&gt;/, ">", line)
    gsub(/&quot;/, "\"", line)
    gsub(/&apos;/, "'", line)
    gsub(/&amp;/, "\\&", line)
    gsub(/\|/, "/", line)
    return line
}

/<testcase / {
    name = result = $0
    sub(/.*<testcase name="/, "", name)
    sub(/".*/, "", name)
    sub(/.* status="/, "", result)
    sub(/".*/, "", result)
    words = ""
    told = 0
}
# the first line that tells of an error, or else the last one
{
    line = text_of($0)
    if (!told && line ~ /[^ \t]/) {
        words = line
        told = line ~ /ERROR|FAILED|Sanitizer|rror:/
    }
}
/<\/testcase>/ {
    if (result == "run")
        print "passed " stage ", " name
    else if (result == "fail")
        print "failed " stage ", " name "|" words \
            "|ctest --test-dir " folder " --output-on-failure -R '^" name "$'"
    else
        print "skipped " stage ", " name ": " words
}
