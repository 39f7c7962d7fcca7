package trigger

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// TestCronTimes: an object is woken at the times of its schedule, and of no other.
func TestCronTimes(t *testing.T) {
	daily := []string{"1d03:30", "2d03:30", "3d03:30"}
	for name, tt := range map[string]struct {
		why, schedule, then string
		within              time.Duration
		want                []string
	}{
		"daily":         {why: "in UTC", schedule: "30 3 * * *", want: daily},
		"a time zone":   {why: "its own", schedule: "CRON_TZ=Etc/GMT-2 30 5 * * *", want: daily},
		"spread":        {why: "the object has half of an hour", schedule: "0 3 * * *", within: time.Hour, want: daily},
		"none":          {why: "an object without a schedule is left alone", schedule: ""},
		"invalid":       {why: "an object with an invalid one is left alone", schedule: "30 25 * * *"},
		"another":       {why: "from the change on, only the new one counts", schedule: "0 1 * * *", then: "30 3 * * *", want: daily},
		"a short one":   {why: "one that comes before the old one counts, too", schedule: "0 0 1 1 *", then: "30 3 * * *", want: daily},
		"no schedule":   {why: "it has none any more", schedule: "0 1 * * *", then: "-"},
		"at an instant": {why: "a word", schedule: "@every 24h30m", want: []string{"2d00:30", "3d01:00"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDesk(t)
				var sources []source.Source
				c := &Cron[*corev1.ConfigMap]{Within: tt.within, Of: func(m *corev1.ConfigMap) string { return m.Data["schedule"] }}
				if err := c.Check(); err != nil {
					t.Fatal(err)
				}
				if err := c.Attach(d.target(&sources)); err != nil {
					t.Fatal(err)
				}
				q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
				defer q.ShutDown()
				if err := sources[0].Start(t.Context(), q); err != nil {
					t.Fatal(err)
				}
				if err := d.runs[0].Start(t.Context()); err != nil {
					t.Fatal(err)
				}
				a := configMap("a")
				a.Data = map[string]string{"schedule": tt.schedule}
				planned := c.appears(a)
				if tt.then != "" {
					if a.Data["schedule"] = tt.then; tt.then == "-" {
						a.Data["schedule"] = ""
					}
					planned = c.appears(a)
				}
				start := time.Now()
				var got []string
				for planned && time.Since(start) < 73*time.Hour {
					wait := c.due(t.Context(), a, 0.5)
					if len(queued(q)) > 0 {
						now := time.Now().UTC()
						got = append(got, now.Format("2")+"d"+now.Format("15:04"))
					}
					if wait <= 0 {
						break
					}
					<-time.After(wait)
				}
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("%s; woken (-want +got):\n%s", tt.why, diff)
				}
			})
		})
	}
}

// TestCronSaysWhatIsWrong: the author can show users what is wrong with a schedule, whatever it is.
func TestCronSaysWhatIsWrong(t *testing.T) {
	c := &Cron[*corev1.ConfigMap]{Of: func(m *corev1.ConfigMap) string { return m.Data["schedule"] }}
	var got []string
	for _, schedule := range []string{"", "@daily", "nonsense", "CRON_TZ=x", "0 0 31 2 *"} {
		m := configMap("a")
		m.Data = map[string]string{"schedule": schedule}
		if err := c.Err(m); err != nil {
			got = append(got, err.Error())
		}
	}
	slices.Sort(got)
	want := []string{
		`schedule "0 0 31 2 *": there is no such day`,
		`schedule "CRON_TZ=x": it cannot be read; write five fields, such as "30 3 * * 1-5", or @daily`,
		`schedule "nonsense": expected exactly 5 fields, found 1: [nonsense]; write five fields, such as "30 3 * * 1-5", or @daily`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("errors (-want +got):\n%s", diff)
	}
	for _, wrong := range []*Cron[*corev1.ConfigMap]{{}, {Schedule: "@daily", Of: c.Of}, {Schedule: "nonsense"}, {Schedule: "@daily", Within: -1}} {
		if wrong.Check() == nil {
			t.Errorf("accepted: %+v", wrong)
		}
	}
}
