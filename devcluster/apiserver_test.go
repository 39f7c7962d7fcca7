package devcluster

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/trimtab-dev/trimtab/devcluster/internal/folder"
)

// TestLateStart: a step that waits too long says for what.
func TestLateStart(t *testing.T) {
	t.Parallel()
	data, err := folder.Temp(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = data.Close() })
	tests := map[string]struct{ checks, want string }{
		"it said what":        {"etcd-readiness", "kube-apiserver is not ready after 5m0s: it waits for etcd-readiness; set a data folder, or a file for the log, to see why"},
		"it said nothing yet": {"", "kube-apiserver is not ready after 5m0s; set a data folder, or a file for the log, to see why"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				late := &lateError{what: "kube-apiserver"}
				ctx, cancel := (&Cluster{folder: data}).waiting(t.Context(), late)
				defer cancel()
				late.checks = tt.checks
				<-ctx.Done()
				if got := context.Cause(ctx).Error(); got != tt.want {
					t.Errorf("it says %q, want %q", got, tt.want)
				}
			})
		})
	}
}

func TestFailedChecks(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ readyz, want, why string }{
		"some": {
			why:    "these are what a start waits for",
			readyz: "[+]ping ok\n[-]etcd-readiness failed: reason withheld\n[+]log ok\n[-]poststarthook/rbac/bootstrap-roles failed: not finished\nreadyz check failed\n",
			want:   "etcd-readiness, poststarthook/rbac/bootstrap-roles",
		},
		"none":      {why: "an answer without checks names none", readyz: "Too many requests, please try again later."},
		"no answer": {why: "the server does not listen yet"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := failedChecks([]byte(tt.readyz)); got != tt.want {
				t.Errorf("%q, want %q: %s", got, tt.want, tt.why)
			}
		})
	}
}
