package fault

import (
	"runtime/debug"
	"runtime/metrics"
)

// How much garbage may pile up before it is collected: eight times as much as what is in use, because runs are short and leave
// everything behind, but not much more than a gigabyte.
const (
	mostPercent  = 800
	leastPercent = 50
	mostGarbage  = 1 << 30 // bytes
)

// collectRarely sets that by what is in use now.
func collectRarely() {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	debug.SetGCPercent(garbagePercent(sample[0].Value.Uint64()))
}

func garbagePercent(inUse uint64) int {
	return int(min(mostPercent, max(leastPercent, mostGarbage*100/max(inUse, 1))))
}
