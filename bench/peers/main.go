// Runs a filter written in Go for the benchmark; ../peer_process.c describes the requests and
// answers.  Each of the other .go files has one filter, and is compiled together with this one.
package main

import (
	"bufio"
	"encoding/binary"
	"io"
	"log"
	"os"
	"strconv"
	"time"
)

// A filter that can be measured.  The keys of add and ask lie one behind the other; both return
// how many keys were added or found.
type filter interface {
	bytes() uint64
	clear()
	add(keys []byte, keyBytes int) uint64
	ask(keys []byte, keyBytes int) uint64
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func answer(value uint64, took time.Duration) {
	must(binary.Write(os.Stdout, binary.LittleEndian, []uint64{value, uint64(took.Nanoseconds())}))
}

func main() {
	capacity, err := strconv.ParseUint(os.Args[1], 10, 64)
	must(err)
	fpr, err := strconv.ParseFloat(os.Args[2], 64)
	must(err)
	keyBytes, err := strconv.Atoi(os.Args[3])
	must(err)
	f := makeFilter(capacity, fpr)
	answer(f.bytes(), 0)
	in := bufio.NewReaderSize(os.Stdin, 1<<16)
	var head [2]uint64
	for binary.Read(in, binary.LittleEndian, &head) == nil {
		keys := make([]byte, int(head[1])*keyBytes)
		_, err := io.ReadFull(in, keys)
		must(err)
		var value uint64
		start := time.Now()
		switch head[0] {
		case 'C':
			f.clear()
		case 'A':
			value = f.add(keys, keyBytes)
		case 'Q':
			value = f.ask(keys, keyBytes)
		}
		answer(value, time.Since(start))
	}
}
