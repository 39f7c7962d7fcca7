package kubesim_test

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/kubesim"
)

// BenchmarkFirstRequest is what a test pays for a cluster with a CRD: New, a client with its
// discovery, and a first object.
func BenchmarkFirstRequest(b *testing.B) {
	for b.Loop() {
		c := kubesim.New(b, kubesim.Options{CRDs: os.DirFS("testdata/crd")})
		k, err := client.New(c.Config(), client.Options{})
		if err != nil {
			b.Fatal(err)
		}
		if err := k.Create(b.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a"}}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkFirstCluster is the same for the first cluster of a process: it runs a process for
// each time and reports the fastest and the median, in milliseconds.
func BenchmarkFirstCluster(b *testing.B) {
	figure := regexp.MustCompile(`BenchmarkFirstRequest\S*\s+1\s+(\d+) ns/op`)
	var all []float64
	for b.Loop() {
		test := exec.CommandContext(b.Context(), os.Args[0], "-test.run=^$", "-test.bench=^BenchmarkFirstRequest$", "-test.benchtime=1x")
		out, err := test.CombinedOutput()
		found := figure.FindSubmatch(out)
		if err != nil || found == nil {
			b.Fatalf("%v: %s", err, out)
		}
		ns, err := strconv.ParseFloat(string(found[1]), 64)
		if err != nil {
			b.Fatal(err)
		}
		all = append(all, ns/1e6)
	}
	slices.Sort(all)
	b.ReportMetric(0, "ns/op") // most of it is starting the process
	b.ReportMetric(all[0], "ms-fastest")
	b.ReportMetric(all[len(all)/2], "ms-median")
}
