#!/bin/bash
# Tests the layers of a folder of sources:  arrows_test.sh NAME FOLDER COMPILER [FLAG...]
# Proves that no object uses one of a higher layer, and that no objects use each other in a
# circle.  FOLDER/LAYERS lists the layers, the lowest first.  Each line is a layer: a folder of
# FOLDER, or the names of objects.  The objects are made without optimisation, so that they use
# all that their sources name, and nm reads which one uses symbols of which other one.
set -eu
name=$1 folder=$2
shift 2
objects=$(mktemp -d)
trap 'rm -rf "$objects"' EXIT

cd "$folder"
find . -name '*.c' |
    xargs -P "$(nproc)" -I FILE sh -c '
        objects=$1
        shift
        mkdir -p "$(dirname "$objects/FILE")"
        "$@" -std=c11 -O0 -w -c FILE -o "$objects/FILE.o"' sh "$objects" "$@"

# Lines "OBJECT U|D SYMBOL": the object, without its suffix, uses or defines the symbol.
cd "$objects"
find . -name '*.c.o' | sort | while read -r object; do
    path=${object#./}
    nm -P "$object" | awk -v object="${path%.c.o}" '
        $2 == "U" { print object, "U", $1 }
        $2 ~ /^[TDBRVWC]$/ { print object, "D", $1 }'
done |
    awk -v name="$name" -v layers="$folder/LAYERS" '
    # Returns the layer of an object, by its folder or else by its own name; 0: it has none.
    function layer_of(object, n, part) {
        n = split(object, part, "/")
        if (n > 1 && part[n - 1] in layer)
            return layer[part[n - 1]]
        return part[n] in layer ? layer[part[n]] : 0
    }

    # Follows the arrows from an object.  An arrow to an object that is still on the way closes
    # a circle.
    function visit(object, way, i, n, next_one) {
        state[object] = "on the way"
        n = split(arrows[object], next_one, " ")
        for (i = 1; i <= n; i++)
            if (state[next_one[i]] == "on the way") {
                sub(".*" next_one[i] " -> ", next_one[i] " -> ", way)
                print name ": a circle: " way " -> " next_one[i]
                bad = 1
            } else if (state[next_one[i]] == "") {
                visit(next_one[i], way " -> " next_one[i])
            }
        state[object] = "done"
    }

    BEGIN {
        while ((getline line < layers) > 0) {
            if (line ~ /^(#|$)/)
                continue
            number++
            n = split(line, word, " ")
            for (i = 1; i <= n; i++)
                layer[word[i]] = number
        }
        if (!number) {
            print name ": no layers in " layers
            exit bad = 1
        }
    }
    { seen[$1] = 1 }
    $2 == "D" { home[$3] = $1 }
    $2 == "U" { uses[++nuses] = $1 " " $3 }
    END {
        for (i = 1; i <= nuses; i++) {
            split(uses[i], use, " ")
            to = home[use[2]]
            if (to == "" || to == use[1] || (use[1], to) in known)
                continue
            known[use[1], to] = 1
            narrows++
            arrows[use[1]] = arrows[use[1]] " " to
            if (layer_of(use[1]) < layer_of(to)) {
                print name ": an arrow back: " use[1] " uses " use[2] " of " to
                bad = 1
            }
        }
        for (object in seen) {
            nobjects++
            if (!layer_of(object)) {
                print name ": " object " is in no layer of " layers
                bad = 1
            }
        }
        for (object in seen)
            if (state[object] == "")
                visit(object, object)
        if (nobjects < 5 || narrows < 5) {
            print name ": only " nobjects + 0 " objects and " narrows + 0 " arrows were found"
            bad = 1
        }
        if (!bad)
            print name ": " nobjects " objects, " narrows " arrows, none back, no circle"
        exit bad
    }'
