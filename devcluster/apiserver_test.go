package devcluster

import "testing"

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
