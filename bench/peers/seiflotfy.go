// Runs github.com/seiflotfy/cuckoofilter.  It has four fingerprints of 8 bits in a bucket,
// whatever rate is asked for, and as many slots as the next power of two of the capacity.
package main

import (
	"math/bits"

	cuckoo "github.com/seiflotfy/cuckoofilter"
)

type buckets struct {
	*cuckoo.Filter
	capacity uint64
}

func makeFilter(capacity uint64, fpr float64) filter {
	return buckets{cuckoo.NewFilter(uint(capacity)), capacity}
}

func (f buckets) bytes() uint64 { return 1 << bits.Len64(f.capacity-1) }
func (f buckets) clear()        { f.Reset() }

// An insertion that fails has thrown out the fingerprint of another key.  The filter is wrong
// from there on, so no more keys are added.
func (f buckets) add(keys []byte, keyBytes int) (added uint64) {
	for ; len(keys) > 0; keys = keys[keyBytes:] {
		if !f.Insert(keys[:keyBytes]) {
			return added
		}
		added++
	}
	return added
}

func (f buckets) ask(keys []byte, keyBytes int) (found uint64) {
	for ; len(keys) > 0; keys = keys[keyBytes:] {
		if f.Lookup(keys[:keyBytes]) {
			found++
		}
	}
	return found
}
