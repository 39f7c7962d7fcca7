package loop

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestReportedSince tells a status that another process of the operator wrote from one that others wrote.
func TestReportedSince(t *testing.T) {
	t.Parallel()
	entry := func(manager, subresource string, second int) metav1.ManagedFieldsEntry {
		at := metav1.NewTime(time.Date(2026, 1, 1, 0, 0, second, 0, time.UTC))
		return metav1.ManagedFieldsEntry{Manager: manager, Subresource: subresource, Time: &at}
	}
	user := entry("kubectl", "", 0)
	for name, tt := range map[string]struct {
		why          string
		before, then []metav1.ManagedFieldsEntry
		want         bool
	}{
		"first":       {"the other process wrote the first status", []metav1.ManagedFieldsEntry{user}, []metav1.ManagedFieldsEntry{user, entry("us", "status", 1)}, true},
		"later":       {"it wrote another one", []metav1.ManagedFieldsEntry{entry("us", "status", 1)}, []metav1.ManagedFieldsEntry{entry("us", "status", 2)}, true},
		"same second": {"nobody else can have written", []metav1.ManagedFieldsEntry{entry("us", "status", 1)}, []metav1.ManagedFieldsEntry{entry("us", "status", 1)}, true},
		"others": {
			"a controller writes its condition all the time",
			[]metav1.ManagedFieldsEntry{entry("us", "status", 1), entry("them", "status", 2)},
			[]metav1.ManagedFieldsEntry{entry("us", "status", 1), entry("them", "status", 3)},
			false,
		},
		"metadata": {"what we wrote besides the status is compared itself", []metav1.ManagedFieldsEntry{user}, []metav1.ManagedFieldsEntry{user, entry("us", "", 1)}, false},
		"unknown":  {"the cache leaves managed fields out", nil, []metav1.ManagedFieldsEntry{entry("us", "status", 1)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{ManagedFields: tt.before}}
			now := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{ManagedFields: tt.then}}
			if got := reportedSince(base, now, "us"); got != tt.want {
				t.Errorf("%s: got %t, want %t", tt.why, got, tt.want)
			}
		})
	}
}
