# Reads what "ctest --output-junit" wrote, and prints a line for each test for stages.sh:
#     awk -v stage=NAME -v folder=BUILD_FOLDER -f results.awk FILE

# Returns a line of XML as plain text.  A | becomes /, since stages.sh separates by |.
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
# Keeps the first line of the output that tells of an error, or else the last line.
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
