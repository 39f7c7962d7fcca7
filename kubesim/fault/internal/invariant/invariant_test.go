package invariant_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/invariant"
)

// on does f at a moment instead of what is usual.
func on(moment string, f func(*story)) func(*story) {
	return func(s *story) { s.instead[moment] = f }
}

// add does f after what is usual at a moment.
func add(moment string, f func(*story)) func(*story) {
	return func(s *story) { s.after[moment] = f }
}

func first(moment string, f func(*story)) func(*story) {
	return func(s *story) { s.before[moment] = f }
}

func both(all ...func(*story)) func(*story) {
	return func(s *story) {
		for _, f := range all {
			f(s)
		}
	}
}

func nothing(*story) {}

// put returns an action that writes an object.
func put(by, key, manifest string) func(*story) {
	return func(s *story) { s.put(by, key, manifest) }
}

// worker writes an object under a generated name that the database controls.
func worker(s *story, more string) string {
	return fmt.Sprintf("{metadata: {%sgenerateName: shop-, ownerReferences: [{apiVersion: demo.dev/v1, kind: Database, name: shop, uid: %q, controller: true}]}, spec: {a: b}}", more, s.uidOf(shop))
}

// workers returns an action that creates such objects.
func workers(names ...string) func(*story) {
	return func(s *story) {
		for _, name := range names {
			s.put("operator", "pods default/"+name, worker(s, ""))
		}
	}
}

// succeeded returns an action that replaces a database with a worker by one with other workers.
func succeeded(more string, names ...string) func(*story) {
	return func(s *story) {
		workers("shop-1")(s)
		s.put("user", shop, database(2, mark, readyAt(1))) // as its successor later
		s.put("user", shop, "")
		s.put("garbage collector", "pods default/shop-1", "")
		s.put("user", shop, strings.Replace(database(1, mark, readyAt(1)), "spec: {", "spec: {"+strings.TrimPrefix(more+", ", ", "), 1))
		workers(names...)(s)
	}
}

type tale struct {
	why string
	// usual changes the undisturbed run, run the one that is judged; nil usual: the good life.
	usual, run func(*story)
	want       []string // "I2: part of the message"
}

func judge(t *testing.T, tests map[string]tale) {
	t.Helper()
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			u, r := newStory(t), newStory(t)
			if tt.usual != nil {
				tt.usual(u)
			}
			if tt.run != nil {
				tt.run(r)
			}
			undisturbed := u.live()
			found := invariant.Against(undisturbed)(r.live())
			var got, want []string
			for _, v := range found {
				got = append(got, v.Invariant)
			}
			for _, w := range tt.want {
				id, text, _ := strings.Cut(w, ": ")
				want = append(want, id)
				if !slices.ContainsFunc(found, func(v history.Violation) bool { return v.Invariant == id && strings.Contains(v.Message, text) }) {
					t.Errorf("no %s says %q", id, text)
				}
			}
			slices.Sort(got)
			slices.Sort(want)
			if diff := cmp.Diff(slices.Compact(want), slices.Compact(got)); diff != "" || t.Failed() {
				t.Errorf("%s: broken invariants (-want +got):\n%s%s", tt.why, diff, tell(found))
			}
		})
	}
}

func tell(found []history.Violation) string {
	var b strings.Builder
	for _, v := range found {
		fmt.Fprintf(&b, "%s at call %d: %s\n%s", v.Invariant, v.Call, v.Message, v.Detail)
	}
	return b.String()
}

func TestExternal(t *testing.T) {
	judge(t, map[string]tale{
		"good": {why: "a good life breaks nothing"},
		"leak": {
			why: "the queue stays", run: on("remove", nothing),
			want: []string{"I2: queue q-1 still exists", "I1: step \"delete\""},
		},
		"leak without a disturbance": {
			why: "it is one in the undisturbed run as well", usual: on("remove", nothing), run: on("remove", nothing),
			want: []string{"I2: queue q-1 still exists"},
		},
		"somebody else's": {
			why:   "what has no owner may stay",
			usual: on("remove", func(s *story) { s.external("operator", history.Resource{Kind: "queue", ID: "other"}) }),
			run:   on("remove", func(s *story) { s.external("operator", history.Resource{Kind: "queue", ID: "other"}) }),
		},
		"owner by name": {
			why: "an owner may be named", want: []string{"I2: databases.demo.dev default/shop, is gone", "I1"},
			run: on("remove", func(s *story) {
				s.external("operator", history.Resource{Kind: "queue", ID: "q-1", Owner: "default/shop", State: "size 2", Ready: true})
			}),
		},
		"another state": {
			why: "the state ends up different", want: []string{"I1: resize", "I8"},
			run: on("update", func(s *story) { s.external("operator", s.queue("q-1", 1)) }),
		},
		"made twice": {
			why: "the answer was lost and the operator made another", want: []string{"I3: 2 external resources of kind \"queue\" at once (q-1, q-2)"},
			run: both(add("make", func(s *story) { s.external("operator", s.queue("q-1", 1), s.queue("q-2", 1)) }),
				add("config", func(s *story) { s.external("operator", s.queue("q-1", 1)) })),
		},
		"made again": {
			why: "what it made is thrown away and made again", want: []string{"I3: created 3 times"},
			run: add("make", func(s *story) {
				s.external("operator")
				s.external("operator", s.queue("q-2", 1))
				s.external("operator", s.queue("q-1", 1))
			}),
		},
		"made again after somebody removed it": {
			why: "that is what operators are for",
			run: add("make", func(s *story) {
				s.external("user")
				s.external("operator", s.queue("q-1", 1))
			}),
		},
		"worker made twice": {
			why: "the cache did not show the first, and the operator removes one later", want: []string{"I3: 2 equal pods at once (shop-1, shop-2), 1 without"},
			usual: add("config", workers("shop-1")), run: add("config", both(workers("shop-1", "shop-2"), put("operator", "pods default/shop-2", ""))),
		},
		"two workers": {
			why: "the undisturbed run has as many", usual: add("config", workers("shop-1", "shop-2")), run: add("config", workers("shop-1", "shop-2")),
		},
		"a worker after another": {
			why: "the first one is gone by then", usual: add("config", workers("shop-2")),
			run: add("config", both(workers("shop-1"), put("operator", "pods default/shop-1", ""), workers("shop-2"))),
		},
		"a worker while another ends": {
			why: "what is being deleted does not count", usual: add("config", workers("shop-2")),
			run: add("config", both(workers("shop-1"), func(s *story) {
				s.put("user", "pods default/shop-1", worker(s, `deletionTimestamp: "2000-01-01T00:00:09Z", finalizers: [x], `))
			}, workers("shop-2"), put("user", "pods default/shop-1", ""))),
		},
		"a successor's worker made twice": {
			why:   "without a disturbance, too: the operator took its predecessor's for its own",
			usual: add("created", succeeded("", "shop-2", "shop-3")), run: add("created", succeeded("", "shop-2", "shop-3")),
			want: []string{"I3: 2 equal pods at once (shop-2, shop-3), 1 without"},
		},
		"a successor that wants more": {
			why: "it is another one", usual: add("created", succeeded("more: true", "shop-2", "shop-3")), run: add("created", succeeded("more: true", "shop-2", "shop-3")),
		},
		"a new object": {
			why: "each incarnation may have its own",
			run: add("created", func(s *story) {
				s.put("user", shop, deleting(mark))
				s.begin("default/shop")
				s.external("operator")
				s.put("operator", shop, "")
				s.end("")
				s.put("user", shop, database(1, "", ""))
				s.begin("default/shop")
				s.put("operator", shop, database(1, mark, ""))
				s.external("operator", s.queue("q-1", 1))
				s.put("operator", shop, database(1, mark, readyAt(1)))
				s.end("")
			}),
		},
		"replaced in another order": {
			why: "for a moment both names exist, as the delete came late",
			usual: on("update", func(s *story) {
				s.external("operator")
				s.external("operator", s.queue("r-1", 2))
			}),
			run: on("update", func(s *story) {
				s.external("operator", s.queue("q-1", 1), s.queue("r-1", 2))
				s.external("operator", s.queue("r-1", 2))
			}),
		},
		"tagged later": {
			why: "make and tag are two calls of one making",
			run: first("make", func(s *story) {
				s.external("operator", history.Resource{Kind: "queue", ID: "q-1", State: "size 1", Ready: true})
			}),
		},
		"stuck": {
			why: "the finalizer stays", run: on("let go", nothing), want: []string{"I6: finalizer demo.dev/finalizer", "I1"},
		},
		"alive": {
			why:   "nobody deletes it, so its finalizer stays",
			usual: both(on("user deletes", nothing), on("remove", nothing), on("let go", nothing)),
			run:   both(on("user deletes", nothing), on("remove", nothing), on("let go", nothing)),
		},
		"stuck on another's finalizer": {
			why:   "the operator does what it can",
			usual: both(on("user deletes", put("user", shop, deleting(mark+", other.dev/f"))), on("let go", put("operator", shop, deleting("other.dev/f")))),
			run:   both(on("user deletes", put("user", shop, deleting(mark+", other.dev/f"))), on("let go", put("operator", shop, deleting("other.dev/f")))),
		},
		"waits for what others hold": {
			why:   "the operator does what it can, and says what it waits for",
			usual: both(held, on("let go", put("operator", shop, waiting))),
			run:   both(held, on("let go", put("operator", shop, waiting))),
		},
		"waits and does not say so": {
			why: "nobody knows that something is held", want: []string{"I6: finalizer demo.dev/finalizer"},
			usual: both(held, on("let go", nothing)),
			run:   both(held, on("let go", nothing)),
		},
	})
}

// held puts a finalizer of others on the ConfigMap, which the operator then deletes.
func held(s *story) {
	on("user deletes", func(s *story) {
		put("user", cfg, strings.Replace(heldConfig, `deletionTimestamp: "2000-01-01T00:00:09Z", `, "", 1))(s)
		put("user", shop, deleting(mark))(s)
	})(s)
	on("remove config", put("operator", cfg, heldConfig))(s)
}

// heldConfig is the ConfigMap when its deletion has begun, and waiting the object that waits for its end.
const (
	heldConfig = `{metadata: {labels: {database: shop}, deletionTimestamp: "2000-01-01T00:00:09Z", finalizers: [other.dev/f]}, data: {a: b}}`
	waiting    = `{metadata: {generation: 2, deletionTimestamp: "2000-01-01T00:00:09Z", finalizers: [` + mark + `]}, spec: {size: 2}, status: {observedGeneration: 2, conditions: [` +
		`{type: Ready, status: "False", reason: Deleting, lastTransitionTime: t3, observedGeneration: 2}]}}`
)

func TestEarlyEffects(t *testing.T) {
	loose := "{data: {a: b}}"
	owned := "{metadata: {ownerReferences: [{apiVersion: demo.dev/v1, kind: Database, name: shop, uid: x}]}, data: {a: b}}"
	bare := both(on("finalizer", nothing), on("make", nothing), on("update", nothing),
		on("ready", put("operator", shop, database(1, "", readyAt(1)))), on("user resizes", put("user", shop, database(2, "", readyAt(1)))),
		on("ready again", put("operator", shop, database(2, "", readyAt(2)))), on("user deletes", put("user", shop, "")), on("let go", nothing),
		on("remove", nothing))
	taken := func(kind string) func(*story) {
		return add("deleted", func(s *story) {
			s.put("user", shop, database(1, "", ""))
			queue := s.queue("q-1", 1)
			s.begin("default/shop")
			s.put("operator", shop, database(1, mark, ""))
			s.fault(kind)
			s.put("user", shop, "")
			s.external("operator", queue)
			s.end("")
			s.begin("default/shop")
			s.external("operator")
			s.end("")
		})
	}
	judge(t, map[string]tale{
		"taken by a delete": {why: "the reconcile was under way when a delete took the finalizer with the object", run: taken("overtaken")},
		"taken by a delete that ended before": {
			why: "nothing was made too late for any delete but one that had begun", run: taken("race"), want: []string{"I4: did not exist"},
		},
		"finalizer afterwards": {
			why: "a crash between leaves a queue that nobody removes", want: []string{"I4: external resource queue q-1 was created before databases.demo.dev default/shop had a finalizer"},
			run: both(on("finalizer", nothing), add("make", put("operator", shop, database(1, mark, "")))),
		},
		"another's finalizer": {
			why: "the operator does not know it", want: []string{"I4: had a finalizer"},
			run: both(on("finalizer", put("foreign", shop, database(1, "other.dev/f", ""))), add("make", put("operator", shop, database(1, mark+", other.dev/f", ""))),
				on("ready", put("operator", shop, database(1, mark+", other.dev/f", readyAt(1)))), add("ready", put("foreign", shop, database(1, mark, readyAt(1))))),
		},
		"finalizer in the manifest": {
			why: "users may write it down", run: both(on("user creates", put("user", shop, database(1, mark, ""))), on("finalizer", nothing)),
		},
		"no object": {
			why: "it was gone already", want: []string{"I4: did not exist", "I2", "I3", "I1"},
			run: add("let go", func(s *story) {
				s.external("operator", history.Resource{Kind: "queue", ID: "q-9", Owner: s.run.External[1].Resources[0].Owner})
			}),
		},
		"loose child": {
			why:   "neither label nor owner, and no finalizer",
			usual: both(bare, on("config", put("operator", cfg, loose))), run: both(bare, on("config", put("operator", cfg, loose))),
			want: []string{"I4: configmaps default/shop-config was created with neither"},
		},
		"child with a label": {why: "the label finds it", usual: bare, run: bare},
		"child with an owner": {
			why:   "the garbage collector finds it",
			usual: both(bare, on("config", put("operator", cfg, owned))), run: both(bare, on("config", put("operator", cfg, owned))),
		},
		"child of an object with a finalizer": {
			why:   "the operator is asked before the object goes",
			usual: on("config", put("operator", cfg, loose)), run: on("config", put("operator", cfg, loose)),
		},
	})
}

func TestStatus(t *testing.T) {
	busy := func(status string) string { return strings.Replace(status, "type: Ready", "type: Updating", 1) }
	flap := func(between func(*story)) func(*story) {
		return add("ready", func(s *story) {
			s.put("operator", shop, database(1, mark, notReady(1)))
			between(s)
			s.tick(time.Second)
			s.put("operator", shop, database(1, mark, readyAt(1)))
		})
	}
	judge(t, map[string]tale{
		"ahead": {
			why: "generation 2 does not exist yet", want: []string{"I7: became 2; the generation of the object is 1"},
			run: first("ready", put("operator", shop, database(1, mark, "observedGeneration: 2"))),
		},
		"back": {
			why: "an old copy was written", want: []string{"I7: status.observedGeneration of databases.demo.dev default/shop went back from 2 to 1"},
			run: add("ready again", func(s *story) {
				s.put("operator", shop, database(2, mark, strings.Replace(readyAt(2), "observedGeneration: 2, cond", "observedGeneration: 1, cond", 1)))
				s.put("operator", shop, database(2, mark, readyAt(2)))
			}),
		},
		"back by another": {
			why: "the operator did not write it",
			run: add("ready again", func(s *story) {
				s.put("foreign", shop, database(2, mark, readyAt(1)))
				s.put("operator", shop, database(2, mark, readyAt(2)))
			}),
		},
		"ready too early": {
			why: "Ready for generation 2 before the queue was resized", want: []string{"I8: says Ready=True for generation 2, but at no time of that reconcile was it so at the external API: queue q-1 is \"size 1\""},
			run: first("update", put("operator", shop, database(2, mark, readyAt(2)))),
		},
		"ready without a thing": {
			why: "Ready before anything was made", want: []string{"I8: there was nothing"},
			run: first("make", put("operator", shop, database(1, mark, readyAt(1)))),
		},
		"ready of a thing that is not": {
			why: "the queue is not up yet", want: []string{"I8: ready: false"},
			run: both(on("make", func(s *story) {
				q := s.queue("q-1", 1)
				q.Ready = false
				s.external("operator", q)
			}), add("ready", func(s *story) { s.tick(time.Second); s.external("vendor", s.queue("q-1", 1)) })),
		},
		"metadata of a ready object": {
			why: "status is left as it was while the thing is away",
			run: add("created", func(s *story) {
				s.tick(time.Second)
				s.external("user")
				s.tick(time.Second)
				s.begin("default/shop")
				s.put("operator", shop, strings.Replace(database(1, mark, readyAt(1)), "metadata: {", "metadata: {annotations: {seen: now}, ", 1))
				s.external("operator", s.queue("q-1", 1))
				s.put("operator", shop, database(1, mark, readyAt(1)))
				s.end("")
			}),
		},
		"ready of the last generation": {
			why: "it does not claim to know the present one",
			run: first("update", put("operator", shop, strings.Replace(database(2, mark, readyAt(1)), "Available", "Resizing", 1))),
		},
		"ready for a spec that is still applied": {
			why: "Ready claims generation 2 beside Reconciling", want: []string{"I8: says Ready=True for generation 2"},
			run: first("update", put("operator", shop, database(2, mark, reconciling(readyAt(2))))),
		},
		"ready while it is applied": {
			why: "without a generation of its own Ready only says that what there is works",
			run: first("update", put("operator", shop, database(2, mark, strings.Replace(reconciling(readyAt(2)), "t1, observedGeneration: 2", "t1", 1)))),
		},
		"ready as before, though nobody can look": {
			why: "what was claimed earlier is no new claim",
			run: add("created", func(s *story) {
				s.tick(time.Second)
				s.external("user")
				s.tick(time.Second)
				s.begin("default/shop")
				s.put("operator", shop, database(1, mark, reconciling(readyAt(1))))
				s.external("operator", s.queue("q-1", 1))
				s.put("operator", shop, database(1, mark, readyAt(1)))
				s.end("")
			}),
		},
		"time without change": {
			why: "the time of a transition without a transition", want: []string{"I9: lastTransitionTime of condition Ready"},
			run: add("ready", func(s *story) {
				s.put("operator", shop, database(1, mark, strings.Replace(readyAt(1), "t1", "t5", 1)))
				s.put("operator", shop, database(1, mark, readyAt(1)))
			}),
		},
		"reason": {
			why: "a sentence is no reason", want: []string{"I9: has the reason \"is not there\""},
			run: first("ready", put("operator", shop, database(1, mark, strings.Replace(notReady(1), "Failing", "is not there", 1)))),
		},
		"flapping":              {why: "nothing happened between", want: []string{"I9: went from True to False and back"}, run: flap(nothing)},
		"flapping with a cause": {why: "somebody removed the queue", run: flap(func(s *story) { s.external("user"); s.external("user", s.queue("q-1", 1)) })},
		"flapping with a fault": {why: "a fault came between", run: flap(func(s *story) { s.fault("failed") })},
		"flapping after a step": {
			why:   "what the step did to the vendor cannot be seen, so it may be the cause",
			usual: add("created", func(s *story) { s.rest(); s.step("vendor fails for a minute") }),
			run: add("created", func(s *story) {
				s.rest()
				s.step("vendor fails for a minute")
				s.put("operator", shop, database(1, mark, notReady(1)))
				s.tick(time.Minute)
				s.put("operator", shop, database(1, mark, readyAt(1)))
			}),
		},
		"flapping after a change that was not seen": {
			why: "what the operator wrote first was about the spec before",
			usual: add("ready", func(s *story) {
				s.put("user", shop, database(2, mark, busy(notReady(1))))
				s.put("operator", shop, database(2, mark, busy(readyAt(2))))
			}),
			run: add("ready", func(s *story) {
				s.put("user", shop, database(2, mark, busy(notReady(1))))
				s.put("operator", shop, database(2, mark, busy(readyAt(1))))
				s.put("operator", shop, database(2, mark, busy(notReady(2))))
				s.tick(time.Second)
				s.put("operator", shop, database(2, mark, busy(readyAt(2))))
			}),
		},
		"flapping after a change": {why: "a user's change is a cause, and a new status within another step", run: first("update", put("operator", shop, database(2, mark, notReady(2))))},
	})
}

func TestOwnership(t *testing.T) {
	other := "configmaps default/theirs"
	del := func(key, uid string) func(*story) {
		return func(s *story) {
			s.put("user", key, "")
			last := &s.run.Changes[len(s.run.Changes)-1]
			last.By = "operator"
			c := s.call(history.Call{Verb: "delete", Resource: "configmaps", Namespace: "default", Name: "theirs", Write: true, Changed: true, Rev: last.Rev, Last: last.Rev, PreconditionUID: uid})
			last.Call = c.Index
		}
	}
	foreground := func(s *story) {
		s.put("operator", other, `{metadata: {deletionTimestamp: "2000-01-01T00:00:09Z", finalizers: [foregroundDeletion]}, data: {a: b}}`)
		last := &s.run.Changes[len(s.run.Changes)-1]
		c := s.call(history.Call{Verb: "delete", Resource: "configmaps", Namespace: "default", Name: "theirs", Write: true, Changed: true, Rev: last.Rev, Last: last.Rev})
		last.Call = c.Index
		s.put("garbage collector", other, "")
	}
	theirs := first("user creates", put("user", other, "{data: {a: b}}"))
	marked := func(by, metadata string) func(*story) {
		return both(
			add("make", put(by, shop, strings.Replace(database(1, mark, ""), "metadata: {", "metadata: {"+metadata+", ", 1))),
		)
	}
	busy := func(by string) func(*story) { return put(by, shop, database(1, mark+", demo.dev/busy", "")) }
	idle := func(by string) func(*story) { return put(by, shop, database(1, mark, "")) }
	labelled := strings.Replace(database(1, mark, ""), "metadata: {", "metadata: {labels: {team: a}, ", 1)
	judge(t, map[string]tale{
		"deletes theirs": {why: "it may be anybody's", usual: both(theirs, add("ready", del(other, ""))), run: both(theirs, add("ready", del(other, ""))), want: []string{"I10: deleted without a UID precondition"}},
		"deletes theirs in the foreground": {
			why:   "the finalizer of the garbage collector is not the operator's mark",
			usual: both(theirs, add("ready", foreground)), run: both(theirs, add("ready", foreground)), want: []string{"I10: deleted without a UID precondition"},
		},
		"deletes what it has seen": {why: "the precondition says which one is meant", usual: both(theirs, add("ready", del(other, "u"))), run: both(theirs, add("ready", del(other, "u")))},
		"overwrites theirs": {
			why: "the data is the user's", usual: both(theirs, add("ready", put("operator", other, "{data: {a: c}}"))), run: both(theirs, add("ready", put("operator", other, "{data: {a: c}}"))),
			want: []string{"I10: configmaps default/theirs was overwritten (data)"},
		},
		"marks theirs": {
			why:   "a label is no content",
			usual: both(theirs, add("ready", put("operator", other, "{metadata: {labels: {used: by}}, data: {a: b}}"))),
			run:   both(theirs, add("ready", put("operator", other, "{metadata: {labels: {used: by}}, data: {a: b}}"))),
		},
		"drops another's label":     {why: "the whole list was written back", run: marked("foreign", "labels: {team: a}"), want: []string{"I10: the label team of databases.demo.dev default/shop is gone; another controller had put it there"}},
		"drops another's finalizer": {why: "it may guard something", run: add("make", put("foreign", shop, database(1, mark+", other.dev/f", ""))), want: []string{"I10: the finalizer other.dev/f"}},
		"drops it with the object": {
			why: "all finalizers were removed from an object in deletion",
			run: both(on("user deletes", put("foreign", shop, deleting(mark+", other.dev/f"))), on("let go", put("operator", shop, ""))), want: []string{"I10: the finalizer other.dev/f"},
		},
		"drops another's condition": {why: "all conditions were written", run: add("make", put("foreign", shop, database(1, mark, `conditions: [{type: Theirs, status: "True", reason: X}]`))), want: []string{"I10: the condition Theirs"}},
		"eats a user's annotation":  {why: "as it does without a disturbance", usual: marked("user", "annotations: {demo.dev/again: x}"), run: marked("user", "annotations: {demo.dev/again: x}")},
		"drops a user's annotation": {why: "it does not without a disturbance", run: marked("user", "annotations: {demo.dev/again: x}"), want: []string{"I10: a user had put it there"}},
		"removes its own finalizer": {why: "that is how objects go"},
		"removes its finalizer that came back": {
			why: "another controller wrote an old state back; this run alone shows whose it is",
			run: add("make", both(busy("operator"), idle("foreign"), busy("foreign"), idle("operator"))),
		},
		"removes its label that another had once": {
			why: "who put it there last is whose it is",
			run: add("make", both(
				put("foreign", shop, labelled), put("foreign", shop, database(1, mark, "")),
				put("operator", shop, labelled), put("operator", shop, database(1, mark, "")))),
		},
		"removes its finalizer that it never added": {
			why:   "another controller wrote it from a backup; the undisturbed run shows whose it is",
			usual: add("make", both(busy("operator"), idle("operator"))),
			run:   add("make", both(busy("foreign"), idle("operator"))),
		},
		"takes over a thing":         {why: "it was not told to", run: first("make", func(s *story) { s.external("user", history.Resource{Kind: "queue", ID: "q-1", State: "x"}) }), want: []string{"I10: external resource queue q-1 was taken over"}},
		"takes over a thing usually": {why: "it is meant to", usual: first("make", func(s *story) { s.external("user", history.Resource{Kind: "queue", ID: "q-1", State: "x"}) }), run: first("make", func(s *story) { s.external("user", history.Resource{Kind: "queue", ID: "q-1", State: "x"}) })},
		"removes a foreign thing": {
			why: "nobody's things are not the operator's", usual: first("make", func(s *story) { s.external("user", history.Resource{Kind: "queue", ID: "zz"}) }),
			run: first("make", func(s *story) { s.external("user", history.Resource{Kind: "queue", ID: "zz"}) }), want: []string{"I10: external resource queue zz was removed"},
		},
	})
}

func TestLoops(t *testing.T) {
	passes := func(n int, gap time.Duration, err string, each func(*story)) func(*story) {
		return func(s *story) {
			for range n {
				s.begin("default/shop")
				each(s)
				s.end(err)
				s.tick(gap)
			}
		}
	}
	backoff := func(s *story) {
		for i := range 12 {
			s.begin("default/shop")
			s.end("no")
			s.tick(5 * time.Millisecond << i)
		}
	}
	read := func(s *story) { s.call(history.Call{Side: history.External, Verb: "read", What: "look"}) }
	tick := func(s *story) { s.tick(time.Minute) }
	kube := func(c history.Call, inPass bool) func(*story) {
		return on("silence", func(s *story) {
			if inPass {
				s.begin("default/shop")
				defer s.end("")
			}
			s.call(c)
		})
	}
	declared := func(n, allowed int) func(*story) {
		return on("silence", func(s *story) {
			s.run.Silence.ReadsAllowed = allowed
			for range n {
				read(s)
			}
		})
	}
	judge(t, map[string]tale{
		"hot":            {why: "twelve reconciles in no time", run: both(add("created", func(s *story) { s.tick(time.Minute); passes(12, 0, "", nothing)(s) })), want: []string{"I13: reconciled default/shop 11 times within a second"}},
		"warm":           {why: "ten are allowed", run: add("created", func(s *story) { s.tick(time.Minute); passes(10, 0, "", nothing)(s) })},
		"polling":        {why: "each second one", run: add("created", passes(60, time.Second, "", read))},
		"back-off":       {why: "it grows", run: add("created", func(s *story) { s.tick(time.Minute); backoff(s) })},
		"no back-off":    {why: "every 200 ms", run: add("created", passes(30, 200*time.Millisecond, "no", nothing)), want: []string{"I13: the back-off has to grow: no"}},
		"failing slowly": {why: "every two seconds is no hurry", run: add("created", passes(30, 2*time.Second, "no", nothing))},
		"write at rest":  {why: "a status write on each resync", run: kube(history.Call{Verb: "patch", Group: "demo.dev", Resource: "databases", Subresource: "status", Namespace: "default", Name: "shop", Write: true}, true), want: []string{"I5: wrote to Kubernetes once in 15m0s, first: patch databases.demo.dev/status default/shop, 0s after the last change"}},
		"writes at rest": {why: "all are named, and when the first comes", run: on("silence", func(s *story) {
			s.begin("default/shop")
			for i := range 15 {
				s.call(history.Call{Verb: "update", Resource: "configmaps", Namespace: "default", Name: fmt.Sprint("c", i%12), Write: true, Changed: true})
				s.tick(time.Second)
			}
			s.end("")
		}), want: []string{"I5: 15 times in 15m15s, first: update configmaps default/c0, 0s after the last change; then update configmaps default/c1, " +
			"update configmaps default/c2, update configmaps default/c3, update configmaps default/c4, update configmaps default/c5, " +
			"update configmaps default/c6, update configmaps default/c7, update configmaps default/c8, update configmaps default/c9, and 2 more"}},
		"lease at rest":    {why: "leases are renewed", run: kube(history.Call{Verb: "update", Group: "coordination.k8s.io", Resource: "leases", Write: true}, false)},
		"read at rest":     {why: "past the cache", run: kube(history.Call{Verb: "get", Resource: "secrets", Namespace: "default", Name: "s"}, true), want: []string{"I5: read objects from the API server, past its caches, once"}},
		"informer at rest": {why: "a watch is renewed", run: kube(history.Call{Verb: "list", Resource: "secrets"}, false)},
		"outside write at rest": {why: "the same again and again", run: on("silence", func(s *story) {
			s.call(history.Call{Side: history.External, Verb: "write", What: "put q", Write: true})
		}), want: []string{"I5: wrote to the external API once in 15m0s, first: put q"}},
		"reads as declared":   {why: "two of two", run: declared(2, 2)},
		"any number of reads": {why: "none declared", run: declared(20, -1)},
		"too many reads":      {why: "three of two", run: declared(3, 2), want: []string{"I5: read the external API 3 times in 15m0s; the scenario allows 2"}},
		"denied":              {why: "a role lacks it", run: func(s *story) { s.run.Access = &history.Access{Denied: []string{"get secrets"}} }, want: []string{"I15: no role of the operator allows get secrets"}},
		"unused":              {why: "that is judged over all runs", run: func(s *story) { s.run.Access = &history.Access{Unused: []string{"get secrets"}} }},
		"leaked":              {why: "a goroutine is left", run: func(s *story) { s.run.Processes[0].Leaked = "goroutine 7\nx\n\ngoroutine 8\ny" }, want: []string{"I17: left 2 goroutines behind"}},
		"panicked":            {why: "a bug is a bug", run: func(s *story) { s.run.Processes[0].Panics = []string{"nil map\nstack"} }, want: []string{"I17: panicked once, first: nil map"}},
		"fenced":              {why: "a dead process may try", run: func(s *story) { s.run.Processes[0].Fenced = []string{"patch x"} }},
		"slow":                {why: "waiting is no loop", run: add("created", tick)},
	})
}

func TestClosure(t *testing.T) {
	a, b := &history.Access{Unused: []string{"get secrets", "list pods"}}, &history.Access{Unused: []string{"list pods", "watch jobs"}}
	tests := map[string]struct {
		why  string
		all  []*history.Access
		want string
	}{
		"in no run":  {"both leave it", []*history.Access{a, nil, b}, "list pods"},
		"in one run": {"the other needs it", []*history.Access{a, {Unused: []string{"watch jobs"}}}, ""},
		"no roles":   {"an administrator", []*history.Access{nil}, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := invariant.Closure(tt.all)
			if (len(got) > 0) != (tt.want != "") || tt.want != "" && !strings.Contains(got[0].Message, ": "+tt.want+";") {
				t.Errorf("got %v, want %q: %s", got, tt.want, tt.why)
			}
		})
	}
}

// One says of each invariant what Against says of all.
func TestOne(t *testing.T) {
	u, r := newStory(t), newStory(t)
	on("remove", nothing)(r)
	undisturbed, run := u.live(), r.live()
	ids := []string{"I1", "I10", "I13", "I14", "I15", "I17", "I19", "I2", "I20", "I3", "I4", "I5", "I6", "I7", "I8", "I9"}
	slices.SortFunc(ids, func(a, b string) int { return invariant.Rank(a) - invariant.Rank(b) })
	var alone, judged []string
	for _, id := range ids {
		for _, v := range invariant.One(id)(run, undisturbed) {
			alone = append(alone, v.Invariant+v.Title+v.Message)
		}
	}
	for _, v := range invariant.Against(undisturbed)(run) {
		judged = append(judged, v.Invariant+v.Title+v.Message)
	}
	if diff := cmp.Diff(alone, judged); diff != "" || len(judged) == 0 {
		t.Errorf("one by one and together (-alone +together):\n%s", diff)
	}
}

func BenchmarkJudge(b *testing.B) {
	s, u := newStory(b), newStory(b)
	many := func(s *story) {
		s.after["created"] = func(s *story) {
			for i := range 30 {
				s.begin("default/shop")
				s.call(history.Call{Side: history.External, Verb: "read", What: "look"})
				s.external("operator", s.queue("q-1", 1+i%2))
				s.put("operator", shop, database(1, mark, readyAt(1)))
				s.end("")
				s.tick(time.Second)
			}
		}
	}
	many(s)
	many(u)
	run, undisturbed := s.live(), u.live()
	b.ReportAllocs()
	judge := invariant.Against(undisturbed)
	for b.Loop() {
		judge(run)
	}
	b.ReportMetric(float64(len(run.Calls)), "calls")
}
