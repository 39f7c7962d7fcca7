// Package spread varies delays from object to object, so that objects that were created together are
// not reconciled together. An object gets the same delays in every process, so that runs are
// reproducible.
package spread

import (
	"encoding/binary"
	"hash/fnv"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Share returns a number in [0, 1) for the n-th delay of an object. The numbers are distributed like
// random ones, over objects and over the delays of one object.
func Share(key types.NamespacedName, n int) float64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(key.String())) // a hash never fails
	_, _ = h.Write(binary.BigEndian.AppendUint64(nil, uint64(n)))
	return float64(mixed(h.Sum64())>>11) / (1 << 53)
}

// Around returns d, varied by up to a tenth.
func Around(d time.Duration, key types.NamespacedName) time.Duration {
	return time.Duration(float64(d) * (0.9 + 0.2*Share(key, 0)))
}

// mixed mixes the bits of a hash, because the high bits of FNV hashes of short texts are similar. It is
// the finalizer of MurmurHash3.
func mixed(x uint64) uint64 {
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}
