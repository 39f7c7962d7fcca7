package corpus

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/trimtab-dev/trimtab/kubesim/fault"
)

// bug is a bug of another operator, re-created from what was published about it.
type bug struct {
	why string
	// setup returns the form with the bug, and the one without.
	setup func(fixed bool) func(ctrl.Manager, *fault.Env) error
	// change makes the scenario; nil leaves the story as it is.
	change func(*fault.Scenario)
	// kind is that of the first schedule that shows the bug, and want what it breaks. If kind is "", the undisturbed
	// run does.
	kind fault.Kind
	want string
	// also is played besides what is played by default.
	also []fault.Kind
	// within is how many schedules are played, in the usual order of all kinds, until one shows it.
	within int
}

// publishedBugs are all of them, by the name of the issue.
func publishedBugs() map[string]bug {
	return map[string]bug{
		"crossplane#3037": {
			why:   "killed between the external create and its record, an object is stuck forever",
			setup: SetupPending, change: fixedSize, kind: fault.Crashes, want: "I1", within: 1,
		},
		"upjet#561": {
			why:   "what an asynchronous create made is known to memory alone and made again after a restart",
			setup: SetupAsync, change: fixedSize, kind: fault.Crashes, want: "I3", within: 5,
		},
		"operatify finalizer": {
			why:   "the finalizer is removed although the external delete failed",
			setup: SetupAnyway, change: fixedSize, kind: fault.Faults, want: "I2", within: 27,
		},
		"component-operator-runtime lastObservedAt": {
			why:   "each observation of a cluster at rest writes the status",
			setup: SetupObserved, want: "I5",
		},
		"cluster-api#13649": {
			why:   "a set that is not in the cache yet is made again",
			setup: SetupSets, change: fixedSize, kind: fault.Stale, want: "I1", within: 52,
		},
		"rabbitmq#782": {
			why:   "killed while a volume grows, it keeps its old size forever",
			setup: SetupExpand, kind: fault.Crashes, want: "I1", within: 9,
		},
		"percona#1043": {
			why:   "killed between two secrets, the second is never made",
			setup: SetupSecrets, kind: fault.Crashes, want: "I1", within: 1,
		},
		"casskop#370": {
			why:   "killed between a smaller set and its record, a claim is left and no later change is made",
			setup: SetupCasskop(false), change: shrinking, kind: fault.Crashes, want: "I1", within: 9,
		},
		"casskop#377": {
			why:   "the published fix of casskop#370: killed between the record and a smaller set, it waits forever",
			setup: SetupCasskop(true), change: shrinking, kind: fault.Crashes, want: "I1", within: 9,
		},
		"nifikop#49": {
			why:   "killed after the configuration is written, the node keeps the old one forever",
			setup: SetupReload, change: reconfigured, kind: fault.Crashes, want: "I1", within: 10,
		},
		"strimzi#8401": {
			why:   "killed while a key is replaced, the old one goes on signing what only the new one may",
			setup: SetupRotate, kind: fault.Crashes, want: "I1", within: 6,
		},
		"operator-marketplace#140": {
			why:   "killed after a change of the spec, it never makes the change",
			setup: SetupRemembered, kind: fault.Crashes, want: "I1", within: 3,
		},
		"kuberay#715": {
			why:   "workers that are not in the cache yet are made again, and some are deleted later",
			setup: SetupWorkers, kind: fault.Delays, want: "I3", within: 70,
		},
		"lws#732": {
			why:   "a leader that is being deleted is taken for that of a new object, which gets two revisions",
			setup: func(fixed bool) func(ctrl.Manager, *fault.Env) error { return SetupRevisions(fixed, fixed) },
			change: func(s *fault.Scenario) {
				fixedSize(s)
				s.Actors = []fault.Actor{SlowDeletion()}
			},
			kind: fault.Races, want: "I3", within: 1,
		},
		"zookeeper-operator#312": {
			why:   "claims are deleted by the name of their cluster, which a later cluster may have",
			setup: SetupClaims, want: "I10",
			change: func(s *fault.Scenario) {
				fixedSize(s)
				s.Actors = []fault.Actor{SetController(false)}
			},
		},
		"cassandra-operator#398": {
			why:   "the claim of a pod that was never seen being deleted is left",
			setup: SetupMisses, kind: fault.Crashes, want: "I1", within: 4,
			change: func(s *fault.Scenario) {
				shrinking(s)
				s.Actors = []fault.Actor{SlowPods(), SetController(true)}
			},
		},
		"cloudnative-pg#6317": {
			why:   "a merge patch of conditions takes away what another process has written there",
			setup: SetupConditions, also: []fault.Kind{fault.Contention}, kind: fault.Contention, want: "I10", within: 58,
		},
		"rabbitmq#648": {
			why:   "an old cache shows a former cluster of the same name being deleted, and the set of the present one goes",
			setup: SetupStops, change: again, also: []fault.Kind{fault.OldCaches}, kind: fault.OldCaches, want: "I3", within: 74,
		},
		"cert-manager#4956": {
			why:   "a create that took effect late, or is not in the cache in time, is made again under another name",
			setup: SetupRequests, change: fixedSize, also: []fault.Kind{fault.LateEffects}, kind: fault.LateEffects, want: "I3", within: 16,
		},
		"provider-azure#230": {
			why:   "what is created again while it is being created gets another password, and the Secret with it",
			setup: SetupPasswords, kind: fault.Crashes, want: "I1", within: 4,
			change: func(s *fault.Scenario) {
				fixedSize(s)
				s.ExternalAPI, s.Quiet = NewServers, 3*time.Minute
			},
		},
		"machine-controller#581": {
			why: "the finalizer is written after the external create",
			setup: func(fixed bool) func(ctrl.Manager, *fault.Env) error {
				if fixed {
					return SetupRenter(NoBug)
				}
				return SetupRenter(LateFinalizer)
			},
			want: "I4",
		},
	}
}

// Each bug is found, within so many schedules of all kinds in their usual order, by the kind that one would expect. The CPU
// time is that of all these, and of the undisturbed runs. TRIMTAB_DEEP=1 plays all schedules, wants none before the first,
// and wants no finding in the fixed form.
func TestPublished(t *testing.T) {
	for name, b := range publishedBugs() {
		t.Run(name, func(t *testing.T) {
			d := exploreWith(t, b.scenario(name, false), b.kinds(), fault.AtMost(max(1, b.within)))
			if !slices.Contains(d.broken, b.want) {
				t.Errorf("%s: broken invariants are %v; want %s among them", b.why, d.broken, b.want)
			}
			if !slices.Contains(d.kinds, b.kind) {
				t.Errorf("%s: found by %v; want %q among them", b.why, d.kinds, b.kind)
			}
			if !deep() {
				return
			}
			exploreWith(t, b.scenario(name, false), b.kinds(), fault.AtMost(0))
			if b.within > 1 {
				if d := exploreWith(t, b.scenario(name, false), b.kinds(), fault.AtMost(b.within-1)); d.broken != nil {
					t.Errorf("%d schedules break %v; want the first finding at %d", b.within-1, d.broken, b.within)
				}
			}
			if d := exploreWith(t, b.scenario(name+" fixed", true), b.kinds(), fault.AtMost(0)); d.broken != nil {
				t.Errorf("the fixed form breaks %v; want nothing", d.broken)
			}
		})
	}
}

func (b bug) scenario(name string, fixed bool) fault.Scenario {
	s := story(name, b.setup(fixed))
	if b.change != nil {
		b.change(&s)
	}
	return s
}

// kinds are those to play.
func (b bug) kinds() fault.Option {
	if b.also == nil {
		return fault.Only()
	}
	return fault.Only(append([]fault.Kind{
		fault.Crashes, fault.Faults, fault.Stale, fault.Duplicates, fault.Delays, fault.Breaks, fault.Races, fault.Overtaken, fault.Forgeries, fault.Panics,
	}, b.also...)...)
}

// SetupCasskop sets up a [Decommission] as casskop had it, or as it was after its published fix.
func SetupCasskop(published bool) func(fixed bool) func(ctrl.Manager, *fault.Env) error {
	return func(fixed bool) func(ctrl.Manager, *fault.Env) error {
		return SetupDecommission(published || fixed, fixed)
	}
}

// fixedSize leaves the change of size out of the story.
func fixedSize(s *fault.Scenario) { s.Steps = slices.Delete(s.Steps, 1, 2) }

// again creates the item once more when it is gone.
func again(s *fault.Scenario) { s.Steps[1], s.Steps[2] = s.Steps[2], s.Steps[0] }

// reconfigured changes the text instead of the size.
func reconfigured(s *fault.Scenario) { s.Steps[1] = fault.Merge(item(), `{"spec":{"text":"two"}}`) }

// shrinking is about a set that becomes smaller.
func shrinking(s *fault.Scenario) {
	i := item()
	i.Spec.Size = 2
	s.Actors = []fault.Actor{SetController(true)}
	s.Steps = []fault.Step{fault.Create(i), fault.Merge(i, `{"spec":{"size":1}}`), fault.Delete(i)}
}

// Operators without a bug, in other styles than the Renter's, have no finding.
func TestNoFalseAlarms(t *testing.T) {
	for name, s := range map[string]fault.Scenario{
		"renter":        withRoles(story("renter", SetupRenter(NoBug))),
		"tells":         withSecret(story("tells", SetupRenter(TellsFailure))),
		"apply":         story("apply", SetupApplier),
		"cluster scope": inCluster(),
		"elected":       elected(),
		"slow vendor":   slow(),
	} {
		t.Run(name, func(t *testing.T) {
			if d := exploreWith(t, s, fault.Only(), some()); d.broken != nil {
				t.Errorf("a correct operator breaks %v; want nothing", d.broken)
			}
		})
	}
}

func withSecret(s fault.Scenario) fault.Scenario {
	s.Secrets = []string{"hunter2"}
	return s
}

func withRoles(s fault.Scenario) fault.Scenario {
	s.Operator.RBAC = manifests("roles")
	return s
}

func inCluster() fault.Scenario {
	s := story("cluster scope", SetupClasses)
	site := &Site{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: Spec{Size: 1}}
	s.Steps = []fault.Step{
		fault.Create(site).Becomes(site, ready),
		fault.Merge(site, `{"spec":{"size":2}}`).Becomes(site, ready),
		fault.Delete(site).Gone(site),
	}
	return s
}

func elected() fault.Scenario {
	s := story("elected", SetupAnnouncer)
	s.Operator.Manager.LeaderElection, s.Operator.Manager.LeaderElectionID, s.Operator.Manager.LeaderElectionNamespace = true, "announcer", "default"
	s.Replicas = 2
	i := item()
	s.Steps[1] = fault.Merge(i, `{"spec":{"text":"two"}}`)
	return s
}

func slow() fault.Scenario {
	s := story("slow vendor", SetupPoller)
	s.ExternalAPI = func() fault.ExternalAPI { return &Cloud{Boot: 20 * time.Second} }
	s.Steps = slices.Delete(s.Steps, 1, 2)
	return s
}
