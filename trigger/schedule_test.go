package trigger

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestNews: an update of an object that polls and schedules look at, and one that they do not.
func TestNews(t *testing.T) {
	for name, tt := range map[string]struct {
		why    string
		change func(*corev1.Service)
		want   bool
	}{
		"a resync":       {why: "nothing was written", change: func(s *corev1.Service) { s.ResourceVersion = "1" }},
		"another object": {why: "it was created again", change: func(s *corev1.Service) { s.UID = "2" }, want: true},
		"a generation":   {why: "its kind has generations", change: func(s *corev1.Service) { s.Generation = 1 }, want: true},
		"content":        {why: "its kind has none", change: func(s *corev1.Service) { s.Spec.ExternalName = "new" }, want: true},
		"metadata":       {why: "the loop itself writes annotations", change: func(s *corev1.Service) { s.Annotations = map[string]string{"a": "b"} }},
		"status":         {why: "the loop itself writes it", change: func(s *corev1.Service) { s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{}} }},
		"left out":       {why: "the cache does not have what differs", change: func(*corev1.Service) {}, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			before := &corev1.Service{}
			before.Name, before.UID, before.ResourceVersion = "a", "1", "1"
			after := before.DeepCopy()
			after.ResourceVersion = "2"
			tt.change(after)
			if got := news(before, after); got != tt.want {
				t.Errorf("%s; news: %t, want %t", tt.why, got, tt.want)
			}
		})
	}
	t.Run("with generations", func(t *testing.T) {
		before, after := configMap("a"), configMap("a")
		before.Generation, after.Generation, after.ResourceVersion = 1, 1, "2"
		after.Data = map[string]string{"a": "b"}
		if news(before, after) {
			t.Error("an update that left the generation is news")
		}
	})
}
