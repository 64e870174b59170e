// What the Go filters have in common: see ../peer_process.c for what comes in and goes out.
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

// add and ask deal with keys one behind the other, and return how many were added or found.
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
	var message [16]byte
	binary.LittleEndian.PutUint64(message[:8], value)
	binary.LittleEndian.PutUint64(message[8:], uint64(took.Nanoseconds()))
	_, err := os.Stdout.Write(message[:])
	must(err)
}

func work(f filter, what byte, keys []byte, keyBytes int) {
	var value uint64
	start := time.Now()
	switch what {
	case 'C':
		f.clear()
	case 'A':
		value = f.add(keys, keyBytes)
	case 'Q':
		value = f.ask(keys, keyBytes)
	}
	answer(value, time.Since(start))
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
	var keys []byte
	for {
		var head [16]byte
		if _, err := io.ReadFull(in, head[:]); err == io.EOF {
			return
		} else {
			must(err)
		}
		size := int(binary.LittleEndian.Uint64(head[8:])) * keyBytes
		if size > len(keys) {
			keys = make([]byte, size)
		}
		_, err := io.ReadFull(in, keys[:size])
		must(err)
		work(f, head[0], keys[:size], keyBytes)
	}
}
