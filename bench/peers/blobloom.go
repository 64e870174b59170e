// Runs github.com/greatroar/blobloom, a blocked Bloom filter.  It takes hashes instead of keys;
// xxhash is what its own benchmark uses.
package main

import (
	"github.com/cespare/xxhash"
	"github.com/greatroar/blobloom"
)

type blocked struct{ *blobloom.Filter }

func makeFilter(capacity uint64, fpr float64) filter {
	return blocked{blobloom.NewOptimized(blobloom.Config{Capacity: capacity, FPRate: fpr})}
}

func (f blocked) bytes() uint64 { return f.NumBits() / 8 }
func (f blocked) clear()        { f.Clear() }

func (f blocked) add(keys []byte, keyBytes int) (added uint64) {
	for ; len(keys) > 0; keys = keys[keyBytes:] {
		f.Add(xxhash.Sum64(keys[:keyBytes]))
		added++
	}
	return added
}

func (f blocked) ask(keys []byte, keyBytes int) (found uint64) {
	for ; len(keys) > 0; keys = keys[keyBytes:] {
		if f.Has(xxhash.Sum64(keys[:keyBytes])) {
			found++
		}
	}
	return found
}
