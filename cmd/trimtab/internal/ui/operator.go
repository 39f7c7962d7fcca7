package ui

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/trimtab-dev/trimtab/cmd/trimtab/internal/inspect"
	"github.com/trimtab-dev/trimtab/cmd/trimtab/internal/model"
	"github.com/trimtab-dev/trimtab/internal/metric"
	"github.com/trimtab-dev/trimtab/internal/running"
	"github.com/trimtab-dev/trimtab/trace"
)

// operatorPage says whether an operator is well, and what it does.
type operatorPage struct {
	Verdict  verdict   `json:"verdict"`
	Findings []finding `json:"findings"`
	// Process is what the operator says; nil if it was not asked or did not answer. Silence is why.
	Process *running.Operator `json:"process,omitempty"`
	Silence string            `json:"silence,omitempty"`
	// Work is what its metrics and records say.
	work
	// Operators are those of the cluster, by their leases, and Objects those of their kinds.
	Operators []replica         `json:"operators"`
	Objects   map[string]counts `json:"objects"`
	Unseen    []string          `json:"unseen,omitempty"`
}

// replica is an operator that leads, or led, and how it is asked.
type replica struct {
	model.Operator
	// Asked: it is the one that the page is about.
	Asked bool `json:"asked"`
	// Commands are those that show what it says; Unreachable is why there are none.
	Commands    []string `json:"commands,omitempty"`
	Unreachable string   `json:"unreachable,omitempty"`
}

// counts are objects of a kind.
type counts struct {
	Ready    int `json:"ready"`
	NotReady int `json:"notReady"`
}

// work is what an operator does, and did.
type work struct {
	Controllers []controller `json:"controllers"`
	Lately      lately       `json:"lately"`
	// PerPass are requests to the API server per pass since the start, but for lists, watches, and what elects a leader and asks for
	// permissions.
	PerPass float64 `json:"perPass"`
	// troubles are counters and gauges that are zero if all is well.
	troubles map[string]float64
}

// controller is one of an operator's. Its counters are those since the start of the process.
type controller struct {
	Name    string             `json:"name"`
	Kind    string             `json:"kind"`
	Waiting float64            `json:"waiting"`
	Busy    float64            `json:"busy"`
	Workers float64            `json:"workers"`
	Passes  float64            `json:"passes"`
	Failed  float64            `json:"failed"`
	Idle    float64            `json:"idle"`
	Causes  map[string]float64 `json:"causes"`
	// Pass is how long a pass took, and Queued how long an object waited for one, on average, in milliseconds.
	Pass   float64 `json:"pass"`
	Queued float64 `json:"queued"`
	// Full is since when objects wait while all workers are busy.
	Full time.Time `json:"full,omitzero"`
	// Down are sources that do not work.
	Down []string `json:"down,omitempty"`
}

// operator is the page of the operator.
func (s *Server) operator(ctx context.Context, _ url.Values) (any, error) {
	p := operatorPage{Findings: []finding{}, Operators: []replica{}, Objects: map[string]counts{}}
	p.Controllers, p.Lately.Hot = []controller{}, []hot{}
	known := s.options.Operator.Known()
	if known {
		if err := p.ask(ctx, s.options.Operator, &s.full); err != nil {
			p.Silence = err.Error()
			if errors.Is(err, inspect.ErrAway) {
				p.Silence = err.Error() + "; it is asked as soon as one does"
			}
		}
	}
	if err := p.look(ctx, s.options); err != nil {
		return nil, err
	}
	now := time.Now()
	p.Findings = append(p.Findings, findingsOf(p, now)...)
	p.Verdict = verdictOf(p, known, now)
	return p, nil
}

// ask has the process say what it knows.
func (p *operatorPage) ask(ctx context.Context, o inspect.Operator, full *fullness) error {
	process, err := o.Describe(ctx)
	if err != nil {
		return err
	}
	metrics, err := o.Metrics(ctx)
	if err != nil {
		return err
	}
	now := time.Now()
	records, err := o.Trace(ctx, trace.Query{Since: now.Add(-recently), Last: mostRecords})
	if err != nil {
		return err
	}
	p.Process, p.Controllers = &process, controllersOf(metrics)
	full.update(p.Controllers, now)
	p.Lately = latelyOf(records, process, now)
	p.PerPass = perPass(process.Requests, metrics.Sum(metric.Passes.Name, nil))
	p.troubles = troublesOf(metrics, now)
	return nil
}

// look reads what the cluster says about operators.
func (p *operatorPage) look(ctx context.Context, o Options) error {
	c := o.Cluster()
	summary, err := c.Status(ctx, schema.GroupVersionKind{}, o.Namespace)
	if err != nil {
		return err
	}
	for kind, n := range summary.Ready {
		p.Objects[kind] = counts{Ready: n}
	}
	for _, object := range summary.NotReady {
		n := p.Objects[object.Kind]
		n.NotReady++
		p.Objects[object.Kind] = n
	}
	for _, op := range c.Operators(ctx) {
		r := replica{Operator: op, Asked: p.Process != nil && p.Process.Lease == op.Namespace+"/"+op.Name}
		if !r.Asked || !p.Process.Leads {
			r.reach(ctx, c)
		}
		p.Operators = append(p.Operators, r)
	}
	p.Unseen = c.Unseen()
	return nil
}

// reach says how the operator is asked.
func (r *replica) reach(ctx context.Context, c *model.Cluster) {
	forward, port, err := c.Reach(ctx, r.Operator)
	if err != nil {
		r.Unreachable = err.Error()
		return
	}
	r.Commands = []string{forward, c.Line("trimtab", "ui", "--operator", "http://127.0.0.1:"+port)}
}

// controllersOf returns the controllers that metrics are about.
func controllersOf(m inspect.Metrics) []controller {
	all := []controller{}
	passes := m.By(metric.Passes.Name, "controller", nil)
	for _, name := range slices.Sorted(maps.Keys(m.By("controller_runtime_max_concurrent_reconciles", "controller", nil))) {
		of := inspect.Where{"controller": name}
		c := controller{
			Name: name, Waiting: m.Sum("workqueue_depth", of), Busy: m.Sum("controller_runtime_active_workers", of),
			Workers: m.Sum("controller_runtime_max_concurrent_reconciles", of),
			Passes:  passes[name], Failed: m.Sum(metric.Failures.Name, of), Idle: m.Sum(metric.Idle.Name, of), Causes: m.By(metric.Causes.Name, "cause", of),
			Pass: milliseconds(m.Mean(metric.PassSeconds.Name, of)), Queued: milliseconds(m.Mean(metric.QueueSeconds.Name, of)),
		}
		for kind := range m.By(metric.Passes.Name, "kind", of) {
			c.Kind = kind
		}
		for source, up := range m.By(metric.SourceUp.Name, "source", of) {
			if up == 0 {
				c.Down = append(c.Down, source)
			}
		}
		slices.Sort(c.Down)
		if _, ours := passes[name]; !ours { // an ordinary controller of controller-runtime
			of["result"] = "error"
			c.Failed = m.Sum("controller_runtime_reconcile_total", of)
			c.Passes = m.Sum("controller_runtime_reconcile_total", inspect.Where{"controller": name})
		}
		all = append(all, c)
	}
	return all
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// perPass returns how many requests there were for each pass.
func perPass(all []running.Requests, passes float64) float64 {
	var n uint64
	for _, r := range all {
		_, group, _ := strings.Cut(r.Resource, ".")
		if r.Verb != "list" && r.Verb != "watch" && group != "coordination.k8s.io" && group != "authorization.k8s.io" {
			n += r.Count
		}
	}
	if passes == 0 {
		return 0
	}
	return float64(n) / passes
}

// fullness remembers since when the workers of controllers have been too few, as long as somebody looks. Its zero value remembers
// nothing.
type fullness struct {
	mu    sync.Mutex
	last  time.Time // when somebody looked
	since map[string]time.Time
}

func (f *fullness) update(all []controller, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now.Sub(f.last) > apart {
		clear(f.since)
	}
	f.last = now
	for i, c := range all {
		if c.Waiting == 0 || c.Busy < c.Workers {
			delete(f.since, c.Name)
			continue
		}
		if f.since == nil {
			f.since = map[string]time.Time{}
		}
		if f.since[c.Name].IsZero() {
			f.since[c.Name] = now
		}
		all[i].Full = f.since[c.Name]
	}
}

const (
	// recently is how far back what an operator did lately goes, and mostRecords how many records are asked for.
	recently    = 10 * time.Minute
	mostRecords = 5000
	// mostHot is how many objects are shown of those with the most passes.
	mostHot = 10
)

// lately is what an operator has done in the window, or since its start if that is later, or in the records that there are.
type lately struct {
	Since  time.Time `json:"since"`
	Passes int       `json:"passes"`
	Failed int       `json:"failed"`
	// Hot are the objects with the most passes.
	Hot []hot `json:"hot"`
	// worst is the most frequent error. unwritten are objects whose status could not be written last, and why.
	worst     string
	unwritten []string
}

// hot is an object and its passes.
type hot struct {
	model.Ref
	Controller string `json:"controller"`
	Passes     int    `json:"passes"`
	Failed     int    `json:"failed"`
	// Idle passes changed nothing: no write, and no call that may change something.
	Idle int `json:"idle"`
	// Outcome is that of the last pass, which ended at At; Why is its error, or what it decided.
	Outcome string    `json:"outcome"`
	At      time.Time `json:"at"`
	Why     string    `json:"why,omitempty"`
	// PerMinute is how many passes there were in a minute, from the first to the last.
	PerMinute float64 `json:"perMinute"`

	first     time.Time
	unwritten string // why the status could not be written last
	changed   bool   // by the pass that is being read
	decided   string // by it
}

// latelyOf reads the passes that ended, from records in their order.
func latelyOf(records []trace.Record, by running.Operator, now time.Time) lately {
	l := lately{Since: now.Add(-recently), Hot: []hot{}}
	if by.Started.After(l.Since) {
		l.Since = by.Started
	}
	versions := map[string]string{} // of the kinds of controllers; records have none
	for _, c := range by.Controllers {
		versions[c.Name] = c.APIVersion
	}
	if len(records) == mostRecords {
		l.Since = records[0].Time
	}
	objects, errs := map[string]*hot{}, map[string]int{}
	for _, r := range records {
		key := r.Controller + "\n" + r.Object.UID + r.Object.String()
		o := objects[key]
		if o == nil {
			o = &hot{Ref: model.Ref{APIVersion: versions[r.Controller], Kind: r.Object.Kind, Namespace: r.Object.Namespace, Name: r.Object.Name}, Controller: r.Controller, first: r.Time}
			objects[key] = o
		}
		end, is := r.Event.(trace.End)
		if !is {
			o.during(r.Event)
			continue
		}
		o.end(end, r.Time)
		l.Passes++
		if end.Err != "" {
			l.Failed++
			errs[end.Err]++
		}
	}
	for _, text := range slices.Sorted(maps.Keys(errs)) {
		if l.worst == "" || errs[text] > errs[l.worst] {
			l.worst = text
		}
	}
	for _, o := range objects {
		if o.Passes > 0 {
			l.Hot = append(l.Hot, *o)
		}
		if o.unwritten != "" {
			l.unwritten = append(l.unwritten, o.Kind+" "+o.Name+": "+o.unwritten)
		}
	}
	slices.Sort(l.unwritten)
	slices.SortFunc(l.Hot, func(a, b hot) int {
		return cmp.Or(cmp.Compare(b.Passes, a.Passes), b.At.Compare(a.At), strings.Compare(a.Kind, b.Kind), strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	l.Hot = l.Hot[:min(mostHot, len(l.Hot))]
	return l
}

// during notes what happens in a pass.
func (o *hot) during(event trace.Event) {
	switch e := event.(type) {
	case trace.Start:
		o.changed, o.decided = false, ""
	case trace.Decision:
		o.decided = strings.TrimSuffix(e.Action+": "+e.Because, ": ")
	case trace.Call:
		o.changed = o.changed || e.Mutating
	case trace.Write:
		o.changed = true
		if e.Subresource == "status" {
			o.unwritten = e.Err
		}
	case trace.Drift, trace.Transition, trace.End:
	}
}

// end notes the end of a pass.
func (o *hot) end(e trace.End, at time.Time) {
	o.Passes++
	o.Outcome, o.At, o.Why = e.Outcome, at, cmp.Or(e.Err, o.decided)
	if e.Err != "" {
		o.Failed++
	} else {
		o.unwritten = ""
	}
	if !o.changed {
		o.Idle++
	}
	if took := at.Sub(o.first).Minutes(); took > 0 {
		o.PerMinute = float64(o.Passes) / max(took, 1)
	}
}
