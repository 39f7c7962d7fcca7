package ui

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/trimtab-dev/trimtab/cmd/trimtab/internal/inspect"
	"github.com/trimtab-dev/trimtab/internal/metric"
	"github.com/trimtab-dev/trimtab/internal/running"
)

// tone is how good or bad something is.
type tone string

const (
	good tone = "good"
	wait tone = "wait" // worth a look
	bad  tone = "bad"
)

// verdict says in a sentence whether an operator is well.
type verdict struct {
	Tone tone   `json:"tone"`
	Text string `json:"text"`
}

// finding is something that is wrong with an operator, or may be.
type finding struct {
	Tone     tone     `json:"tone"`
	Text     string   `json:"text"`
	Evidence []string `json:"evidence,omitempty"`
	Remedy   string   `json:"remedy,omitempty"`
	// Command is what Remedy speaks of, if it is one for a shell.
	Command string `json:"command,omitempty"`
}

const (
	// tooLong is how long all workers may be busy while objects wait, and tooOften how many passes over one object in a minute are too
	// many if there were at least tooMany.
	tooLong  = time.Minute
	tooOften = 20
	tooMany  = 60
	// enough passes say something about the share of those that fail.
	enough = 10
)

// findingsOf returns what is wrong, worst first. It is a function of the page alone.
func findingsOf(p operatorPage, now time.Time) []finding {
	var all []finding
	if p.Process != nil {
		all = slices.Concat(permissionsOf(*p.Process), checksOf(*p.Process), troubles(p.troubles))
		for _, c := range p.Controllers {
			all = append(all, controllerFindings(c, now)...)
		}
		all = append(all, latelyFindings(p.Lately, now)...)
	}
	for _, r := range p.Operators {
		if r.Leads || p.Process != nil && (!r.Asked || !p.Process.Leads) { // one that has just started waits for its lease
			continue
		}
		text, remedy := r.String(), "start it; until then, nobody works on objects of kind "
		if r.Asked {
			text = "the operator works on objects and does not hold the lease " + p.Process.Lease
			remedy = "read in its log why it cannot renew the lease; another replica may begin to work on objects of kind "
		}
		all = append(all, finding{Tone: bad, Text: text, Remedy: remedy + strings.Join(r.Kinds, ", ")})
	}
	slices.SortStableFunc(all, func(a, b finding) int { return strings.Compare(string(a.Tone), string(b.Tone)) }) // bad before wait
	return all
}

// permissionsOf is about permissions that are missing.
func permissionsOf(o running.Operator) []finding {
	lacks := slices.Clone(o.Missing)
	var evidence []string
	for _, r := range o.Requests {
		if r.Last == nil || r.Last.Verdict != running.Missing {
			continue
		}
		if plain := r.Verb + " " + r.Resource; !slices.ContainsFunc(lacks, func(has string) bool { return strings.HasPrefix(has, plain) }) {
			lacks = append(lacks, r.Last.Permission)
		}
		evidence = append(evidence, fmt.Sprintf("%s was refused, %s", r.Last.Permission, times(r.Refused)))
	}
	if len(lacks) == 0 {
		return nil
	}
	text := "the operator lacks the permission to " + lacks[0]
	if len(lacks) > 1 {
		text = fmt.Sprintf("the operator lacks %d permissions", len(lacks))
		evidence = append(lacks, evidence...)
	}
	f := finding{Tone: bad, Text: text, Evidence: evidence}
	if o.Grant != "" {
		f.Remedy, f.Command = "apply the roles that the operator prints; its program is named as in its image", o.Grant
	}
	return []finding{f}
}

// starting is the health check that fails until the operator has started.
const starting = "manager"

// checksOf is about health checks that fail. It leaves out the one of permissions, which permissionsOf explains, and that of the
// start, which verdictOf does.
func checksOf(o running.Operator) (all []finding) {
	for _, c := range o.Failing {
		switch {
		case c.Name == "permissions" && len(o.Missing) > 0:
			continue
		case c.Name == starting:
			continue
		}
		all = append(all, finding{Tone: bad, Text: fmt.Sprintf("the health check %s fails: %s", c.Name, c.Problem), Evidence: []string{"it is one of /" + c.Endpoint}})
	}
	return all
}

// troublesOf returns what is zero in the metrics of an operator that is well.
func troublesOf(m inspect.Metrics, now time.Time) map[string]float64 {
	all := map[string]float64{}
	for _, of := range []metric.Metric{metric.OverBudget, metric.Vanished, metric.LeftBehind} {
		all[of.Name] = m.Sum(of.Name, nil)
	}
	all[metric.Vanished.Name] -= m.Sum(metric.Vanished.Name, inspect.Where{"reason": "CleanedUp"})
	for _, at := range m.By(metric.CertExpiry.Name, "operator", nil) {
		if time.Unix(int64(at), 0).Before(now.Add(7 * 24 * time.Hour)) {
			all[metric.CertExpiry.Name]++
		}
	}
	return all
}

// troubles explains them.
func troubles(counted map[string]float64) (all []finding) {
	for _, t := range []struct {
		of     metric.Metric
		tone   tone
		text   string
		remedy string
	}{
		{metric.CertExpiry, bad, "the certificate of the webhooks expires in less than a week", "read in the log of the operator why it is not renewed"},
		{metric.Vanished, wait, "objects have gone past their finalizer since its start", "read the events of their namespaces; something may have to be cleaned up by hand"},
		{metric.LeftBehind, wait, "calls of drivers have not returned although their time is over", "have the driver honour its context"},
		{metric.OverBudget, wait, "passes have written more often than they may since its start", "report it: it is a bug, or two controllers write to one object"},
	} {
		n := counted[t.of.Name]
		if n > 0 {
			all = append(all, finding{Tone: t.tone, Text: t.text, Evidence: []string{fmt.Sprintf("%s is %.0f", t.of.Name, n)}, Remedy: t.remedy})
		}
	}
	return all
}

// controllerFindings is about the queue and the sources of a controller.
func controllerFindings(c controller, now time.Time) (all []finding) {
	if full := now.Sub(c.Full); !c.Full.IsZero() && full >= tooLong {
		all = append(all, finding{
			Tone: wait, Text: fmt.Sprintf("controller %s is too slow: all of its workers have been busy for %s while objects wait", c.Name, full.Round(time.Second)),
			Evidence: []string{fmt.Sprintf("%.0f wait; a pass takes %.0f ms on average", c.Waiting, c.Pass)},
			Remedy:   "find out what passes wait for, or raise Options.Workers",
		})
	}
	for _, source := range c.Down {
		all = append(all, finding{
			Tone: bad, Text: fmt.Sprintf("source %s of controller %s does not work", source, c.Name),
			Remedy: "read in the log of the operator why; until it works, what it watches wakes no object",
		})
	}
	return all
}

// latelyFindings is about passes.
func latelyFindings(l lately, now time.Time) (all []finding) {
	if n := len(l.unwritten); n > 0 {
		all = append(all, finding{
			Tone: bad, Text: "the API server does not take the status of " + objects(n), Evidence: l.unwritten[:min(3, n)],
			Remedy: "compare the CRD and the role in the cluster with those that the operator prints",
		})
	}
	if l.Passes >= enough && 2*l.Failed > l.Passes {
		all = append(all, finding{
			Tone: bad, Text: fmt.Sprintf("most passes fail: %d of the last %d", l.Failed, l.Passes),
			Evidence: []string{"most often: " + l.worst}, Remedy: "the page of an object that is not ready says what to do",
		})
	}
	for _, o := range l.Hot {
		if o.Passes < tooMany || o.PerMinute < tooOften || now.Sub(o.At) > tooLong {
			continue
		}
		all = append(all, finding{
			Tone: wait, Text: fmt.Sprintf("%s %s does not come to rest: %d passes, %.0f a minute", o.Kind, o.Name, o.Passes, o.PerMinute),
			Evidence: []string{fmt.Sprintf("%d of them changed nothing; the last one ended with %s", o.Idle, o.Outcome)},
			Remedy:   "find out what wakes it: something that changes all the time, or a short interval",
		})
	}
	return all
}

// minutes is a duration in words.
func minutes(d time.Duration) string {
	if n := int(d.Round(time.Minute).Minutes()); n > 1 {
		return fmt.Sprintf("%d minutes", n)
	}
	return "minute"
}

func objects(n int) string {
	if n == 1 {
		return "one object"
	}
	return fmt.Sprintf("%d objects", n)
}

func times(n uint64) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// verdictOf puts all in a sentence. known reports whether it is known where the operator is asked.
func verdictOf(p operatorPage, known bool, now time.Time) verdict {
	switch {
	case !known:
		return fromOutside(p)
	case p.Process == nil:
		return verdict{bad, "The operator does not answer: " + p.Silence + "."}
	}
	name := "Operator " + p.Process.Name
	serious := len(slices.DeleteFunc(slices.Clone(p.Findings), func(f finding) bool { return f.Tone != bad }))
	switch {
	case serious == 1:
		return verdict{bad, name + " is not well: " + p.Findings[0].Text + "."}
	case serious > 1:
		return verdict{bad, fmt.Sprintf("%s is not well: %s, and %d more.", name, p.Findings[0].Text, serious-1)}
	case slices.ContainsFunc(p.Process.Failing, func(c running.Check) bool { return c.Name == starting }):
		return verdict{wait, name + " is starting: its caches are not filled yet."}
	case !p.Process.Leads && slices.ContainsFunc(p.Operators, func(r replica) bool { return r.Asked && r.Leads }):
		return verdict{wait, name + " stands by: another replica holds the lease " + p.Process.Lease + " and does the work."}
	case !p.Process.Leads:
		return verdict{wait, strings.TrimSpace(name+" does not work on objects yet: it waits for the lease "+p.Process.Lease) + "."}
	case len(p.Findings) > 0:
		return verdict{wait, name + " works, but " + p.Findings[0].Text + "."}
	}
	leads := "it works"
	if p.Process.Lease != "" {
		leads = "it leads"
	}
	text := fmt.Sprintf("%s is well: %s, all %d health checks pass, and ", name, leads, p.Process.Checks)
	switch l := p.Lately; {
	case l.Passes == 0:
		text += "it is at rest."
	case l.Failed == 0:
		text += fmt.Sprintf("no pass of the last %s failed.", minutes(now.Sub(l.Since)))
	default:
		text += fmt.Sprintf("%d of %d passes of the last %s failed.", l.Failed, l.Passes, minutes(now.Sub(l.Since)))
	}
	return verdict{good, text}
}

// fromOutside is what the leases say.
func fromOutside(p operatorPage) verdict {
	var away []string
	for _, r := range p.Operators {
		if !r.Leads {
			away = append(away, r.Namespace+"/"+r.Name)
		}
	}
	switch {
	case len(p.Operators) == 0:
		return verdict{wait, "No operator is seen in this cluster: none holds a lease that has a role of the same name."}
	case len(away) == 1:
		return verdict{bad, "Operator " + away[0] + " does not run."}
	case len(away) > 1:
		return verdict{bad, "These operators do not run: " + strings.Join(away, ", ") + "."}
	case len(p.Operators) == 1:
		return verdict{wait, fmt.Sprintf("Operator %s/%s leads. What it does inside, it says itself: see below how to ask it.", p.Operators[0].Namespace, p.Operators[0].Name)}
	}
	return verdict{wait, fmt.Sprintf("All %d operators have a leader. What one does inside, it says itself: see below how to ask it.", len(p.Operators))}
}
