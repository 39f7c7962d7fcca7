package beside

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"
)

// tick is the unit of CPU time in /proc.
const tick = 10 * time.Millisecond

// cpuOf returns the CPU time that a process has used, 0 where there is no /proc.
func cpuOf(t *testing.T, pid int) time.Duration {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:]) // from the third field on
	var sum int
	for _, field := range fields[11:13] { // user and system
		n, err := strconv.Atoi(string(field))
		if err != nil {
			t.Fatalf("read /proc: %v in %s", err, stat)
		}
		sum += n
	}
	return time.Duration(sum) * tick
}

// peakOf returns the largest resident set of a process in MiB, 0 where there is no /proc.
func peakOf(t *testing.T, pid int) float64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := bytes.Cut(status, []byte("VmHWM:"))
	kib, err := strconv.Atoi(string(bytes.Fields(rest)[0]))
	if err != nil {
		t.Fatalf("read /proc: %v in %s", err, status)
	}
	return float64(kib) / 1024
}
