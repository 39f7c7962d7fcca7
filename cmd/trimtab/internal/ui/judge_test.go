package ui

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trimtab-dev/trimtab/cmd/trimtab/internal/model"
	"github.com/trimtab-dev/trimtab/internal/metric"
	"github.com/trimtab-dev/trimtab/internal/running"
)

// TestVerdict: the first sentence is about what is worst, and each finding says what to do about it.
func TestVerdict(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	replicaOf := func(name string, leads bool) replica {
		return replica{Operator: model.Operator{Namespace: "ops", Name: name, Holder: map[bool]string{true: name + "-1"}[leads], Leads: leads, Kinds: []string{"Stream"}}}
	}
	refused := func(v running.Verdict) running.Requests {
		return running.Requests{Verb: "patch", Resource: "streams.x.io/status", Count: 9, Refused: 3, Last: &running.Refusal{Permission: "patch streams.x.io/status in namespace shop", Verdict: v}}
	}
	healthy := func(change func(*operatorPage)) operatorPage {
		p := operatorPage{
			Process:   &running.Operator{Name: "streams", Lease: "ops/streams", Leads: true, Checks: 5, Grant: "streams manifests rbac | kubectl apply -f -"},
			work:      work{Controllers: []controller{{Name: "stream", Workers: 4}}, Lately: lately{Passes: 30, Since: now.Add(-10 * time.Minute)}},
			Operators: []replica{replicaOf("streams", true), replicaOf("other", false)},
		}
		p.Operators[0].Asked = true
		change(&p)
		return p
	}
	tests := map[string]struct {
		why      string
		page     operatorPage
		unknown  bool // where it is asked
		tone     tone
		text     string
		findings []string
	}{
		"well":      {"nothing else is worth a word, and another operator is not this one's matter", healthy(func(*operatorPage) {}), false, good, "Operator streams is well: it leads, all 5 health checks pass, and no pass of the last 10 minutes failed.", nil},
		"some fail": {"a failure of an object is that object's", healthy(func(p *operatorPage) { p.Lately.Failed = 3 }), false, good, "Operator streams is well: it leads, all 5 health checks pass, and 3 of 30 passes of the last 10 minutes failed.", nil},
		"rests":     {"no pass is good, too", healthy(func(p *operatorPage) { p.Lately.Passes = 0 }), false, good, "Operator streams is well: it leads, all 5 health checks pass, and it is at rest.", nil},
		"unelected": {"there is no lease", healthy(func(p *operatorPage) { p.Process.Lease = "" }), false, good, "Operator streams is well: it works, all 5 health checks pass, and no pass of the last 10 minutes failed.", nil},
		"stands by": {"it is well, and does nothing", healthy(func(p *operatorPage) { p.Process.Leads = false }), false, wait, "Operator streams stands by: another replica holds the lease ops/streams and does the work.", nil},
		"silent":    {"the port is forwarded no more", operatorPage{Silence: "connection refused"}, false, bad, "The operator does not answer: connection refused.", nil},
		"starting":  {"it is not broken", healthy(func(p *operatorPage) { p.Process.Failing = []running.Check{{Name: "manager", Problem: "starting"}} }), false, wait, "Operator streams is starting: its caches are not filled yet.", nil},
		"starts alone": {"nobody else has the lease of its predecessor", healthy(func(p *operatorPage) {
			p.Process.Leads, p.Operators[0] = false, replicaOf("streams", false)
			p.Operators[0].Asked, p.Process.Failing = true, []running.Check{{Name: "manager", Problem: "starting"}}
		}), false, wait, "Operator streams is starting: its caches are not filled yet.", nil},
		"waits": {"its predecessor was killed", healthy(func(p *operatorPage) {
			p.Process.Leads, p.Operators[0] = false, replicaOf("streams", false)
			p.Operators[0].Asked = true
		}), false, wait, "Operator streams does not work on objects yet: it waits for the lease ops/streams.", nil},
		"lapsed": {"it works, and another may begin to", healthy(func(p *operatorPage) {
			p.Operators[0] = replicaOf("streams", false)
			p.Operators[0].Asked = true
		}), false, bad, "Operator streams is not well: the operator works on objects and does not hold the lease ops/streams.", []string{"bad: the operator works on objects and does not hold the lease ops/streams"}},
		"missing": {"it is one finding, with the grant", healthy(func(p *operatorPage) {
			p.Process.Missing, p.Process.Failing = []string{"get secrets"}, []running.Check{{Name: "permissions", Problem: "not permitted: get secrets"}}
		}), false, bad, "Operator streams is not well: the operator lacks the permission to get secrets.", []string{"bad: the operator lacks the permission to get secrets $ streams manifests rbac | kubectl apply -f -"}},
		"revoked": {"the start was long ago", healthy(func(p *operatorPage) { p.Process.Requests = []running.Requests{refused(running.Missing)} }), false, bad, "Operator streams is not well: the operator lacks the permission to patch streams.x.io/status in namespace shop.", []string{"bad: the operator lacks the permission to patch streams.x.io/status in namespace shop [patch streams.x.io/status in namespace shop was refused, 3 times] $ streams manifests rbac | kubectl apply -f -"}},
		"both": {"one permission is one, however often it is seen", healthy(func(p *operatorPage) {
			p.Process.Missing, p.Process.Requests = []string{"get secrets", "patch streams.x.io/status"}, []running.Requests{refused(running.Missing)}
		}), false, bad, "Operator streams is not well: the operator lacks 2 permissions.", []string{"bad: the operator lacks 2 permissions [get secrets; patch streams.x.io/status; patch streams.x.io/status in namespace shop was refused, 3 times] $ streams manifests rbac | kubectl apply -f -"}},
		"a quota": {"it is not the operator", healthy(func(p *operatorPage) {
			p.Process.Requests = []running.Requests{refused(running.Permitted), refused(running.Unknown)}
		}), false, good, "Operator streams is well: it leads, all 5 health checks pass, and no pass of the last 10 minutes failed.", nil},
		"stuck": {"a pass hangs", healthy(func(p *operatorPage) {
			p.Process.Failing = []running.Check{{Endpoint: "livez", Name: "Stream", Problem: "it is stuck"}}
		}), false, bad, "Operator streams is not well: the health check Stream fails: it is stuck.", []string{"bad: the health check Stream fails: it is stuck [it is one of /livez]"}},
		"source": {"what it watches is missed", healthy(func(p *operatorPage) { p.Controllers[0].Down = []string{"poll"} }), false, bad, "Operator streams is not well: source poll of controller stream does not work.", []string{"bad: source poll of controller stream does not work"}},
		"full": {"a minute is more than a burst", healthy(func(p *operatorPage) {
			p.Controllers[0].Full, p.Controllers[0].Waiting, p.Controllers[0].Pass = now.Add(-time.Minute), 7, 1500
		}), false, wait, "Operator streams works, but controller stream is too slow: all of its workers have been busy for 1m0s while objects wait.", []string{"wait: controller stream is too slow: all of its workers have been busy for 1m0s while objects wait [7 wait; a pass takes 1500 ms on average]"}},
		"a burst":   {"work is done", healthy(func(p *operatorPage) { p.Controllers[0].Full = now.Add(-59 * time.Second) }), false, good, "Operator streams is well: it leads, all 5 health checks pass, and no pass of the last 10 minutes failed.", nil},
		"most fail": {"one cause for all", healthy(func(p *operatorPage) { p.Lately.Failed, p.Lately.worst = 16, "no route" }), false, bad, "Operator streams is not well: most passes fail: 16 of the last 30.", []string{"bad: most passes fail: 16 of the last 30 [most often: no route]"}},
		"too few":   {"nine passes say nothing", healthy(func(p *operatorPage) { p.Lately.Passes, p.Lately.Failed = 9, 9 }), false, good, "Operator streams is well: it leads, all 5 health checks pass, and 9 of 9 passes of the last 10 minutes failed.", nil},
		"restless": {"a loop", healthy(func(p *operatorPage) {
			p.Lately.Hot = []hot{{Ref: model.Ref{Kind: "Stream", Name: "a"}, Passes: 60, PerMinute: 20, Idle: 59, Outcome: "Done", At: now.Add(-time.Minute)}}
		}), false, wait, "Operator streams works, but Stream a does not come to rest: 60 passes, 20 a minute.", []string{"wait: Stream a does not come to rest: 60 passes, 20 a minute [59 of them changed nothing; the last one ended with Done]"}},
		"rests again": {"it polled while something was created", healthy(func(p *operatorPage) {
			p.Lately.Hot = []hot{{Passes: 60, PerMinute: 60, At: now.Add(-61 * time.Second)}}
		}), false, good, "Operator streams is well: it leads, all 5 health checks pass, and no pass of the last 10 minutes failed.", nil},
		"busy": {"something is under way", healthy(func(p *operatorPage) {
			p.Lately.Hot = []hot{{Passes: 59, PerMinute: 30, At: now}, {Passes: 100, PerMinute: 19, At: now}}
		}), false, good, "Operator streams is well: it leads, all 5 health checks pass, and no pass of the last 10 minutes failed.", nil},
		"status": {"users see nothing", healthy(func(p *operatorPage) { p.Lately.unwritten = []string{"Stream a: too long"} }), false, bad, "Operator streams is not well: the API server does not take the status of one object.", []string{"bad: the API server does not take the status of one object [Stream a: too long]"}},
		"counters": {"they stay until it is started again", healthy(func(p *operatorPage) {
			p.troubles = map[string]float64{metric.OverBudget.Name: 2, metric.CertExpiry.Name: 1, metric.Vanished.Name: 0}
		}), false, bad, "Operator streams is not well: the certificate of the webhooks expires in less than a week.", []string{"bad: the certificate of the webhooks expires in less than a week [trimtab_webhook_cert_expiry_timestamp_seconds is 1]", "wait: passes have written more often than they may since its start [trimtab_budget_exceeded_total is 2]"}},
		"two things": {"what is worst comes first", healthy(func(p *operatorPage) {
			p.Controllers[0].Down, p.Process.Missing = []string{"poll"}, []string{"get secrets"}
		}), false, bad, "Operator streams is not well: the operator lacks the permission to get secrets, and 1 more.", []string{"bad: the operator lacks the permission to get secrets $ streams manifests rbac | kubectl apply -f -", "bad: source poll of controller stream does not work"}},
		"not asked": {"a lease is all that is known", operatorPage{Operators: []replica{replicaOf("a", true)}}, true, wait, "Operator ops/a leads. What it does inside, it says itself: see below how to ask it.", nil},
		"several":   {"a cluster has many", operatorPage{Operators: []replica{replicaOf("a", true), replicaOf("b", true)}}, true, wait, "All 2 operators have a leader. What one does inside, it says itself: see below how to ask it.", nil},
		"gone":      {"nobody works", operatorPage{Operators: []replica{replicaOf("a", true), replicaOf("b", false)}}, true, bad, "Operator ops/b does not run.", []string{"bad: operator ops/b does not run: its lease has been released, and nobody has taken it"}},
		"all gone":  {"nobody works", operatorPage{Operators: []replica{replicaOf("a", false), replicaOf("b", false)}}, true, bad, "These operators do not run: ops/a, ops/b.", []string{"bad: operator ops/a does not run: its lease has been released, and nobody has taken it", "bad: operator ops/b does not run: its lease has been released, and nobody has taken it"}},
		"none":      {"an empty cluster", operatorPage{}, true, wait, "No operator is seen in this cluster: none holds a lease that has a role of the same name.", nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p := tt.page
			p.Findings = findingsOf(p, now)
			var findings []string
			for _, f := range p.Findings {
				text := fmt.Sprintf("%s: %s", f.Tone, f.Text)
				if len(f.Evidence) > 0 {
					text += " [" + strings.Join(f.Evidence, "; ") + "]"
				}
				if f.Command != "" {
					text += " $ " + f.Command
				}
				if f.Remedy == "" && f.Tone == bad && !strings.Contains(f.Text, "health check") {
					t.Errorf("%s: it does not say what to do", f.Text)
				}
				findings = append(findings, text)
			}
			if diff := cmp.Diff(verdict{tt.tone, tt.text}, verdictOf(p, !tt.unknown, now)); diff != "" {
				t.Errorf("%s: the verdict (-want +got)\n%s", tt.why, diff)
			}
			if diff := cmp.Diff(tt.findings, findings); diff != "" {
				t.Errorf("%s: findings (-want +got)\n%s", tt.why, diff)
			}
		})
	}
}
