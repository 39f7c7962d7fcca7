// Package spread varies waits from object to object, so that what was made together does
// not come back together. The same object gets the same wait in every process and in every
// run: a run can be repeated.
package spread

import (
	"encoding/binary"
	"hash/fnv"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Share is a number in [0, 1) for the n-th wait of an object. Over objects, and over the
// waits of one object, the numbers are as evenly spread as chance would have them.
func Share(key types.NamespacedName, n int) float64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(key.String())) // a hash never fails
	_, _ = h.Write(binary.BigEndian.AppendUint64(nil, uint64(n)))
	return float64(mixed(h.Sum64())>>11) / (1 << 53)
}

// Around is d, give or take a tenth.
func Around(d time.Duration, key types.NamespacedName) time.Duration {
	return time.Duration(float64(d) * (0.9 + 0.2*Share(key, 0)))
}

// mixed carries every bit of a hash into every other: FNV leaves the high bits of short
// texts alike. It is the last step of MurmurHash3.
func mixed(x uint64) uint64 {
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}
