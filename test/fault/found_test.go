package fault

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trimtab-dev/trimtab/kubesim/fault"
)

// bug is one of ours that a schedule found.
type bug struct {
	why   string // it is one
	token string
	at    string // what the token disturbs
}

// bugs are the schedules that found bugs of ours, as docs/found-by-fault.md lists them. [suite] plays them.
func bugs() map[string]bug {
	return map[string]bug{
		"conditions": {
			"a call that fails once must not show for ever in conditions that are False",
			"v1/nats-life/failed@10",
			"failed at STREAM.INFO orders",
		},
		"unknown": {
			"as long as observations fail, Ready reports the last failure, not the first",
			"v1/nats-denied/failed@5",
			"failed at STREAM.INFO orders",
		},
		"waiting": {
			"an observation that fails while a dependency is not ready is repeated soon",
			"v1/nats-lost/failed@38",
			"failed at CONSUMER.INFO orders/billing",
		},
		"refused": {
			"a refused connection at a create leaves the same conditions as none",
			"v1/nats-invalid/refused@6",
			"refused at STREAM.CREATE orders",
		},
		"paused": {
			"an observation that fails while an object is paused is repeated soon",
			"v1/nats-pause/failed@10",
			"failed at STREAM.INFO orders",
		},
		"behind": {
			"an observation that is behind just after a dependency went is repeated",
			"v1/nats-lost/lag@38",
			"lag at CONSUMER.INFO orders/billing",
		},
		"wired": {
			"a driver that cannot name what it depends on when the operator starts does not run without watching it",
			"v1/nats-life/panic@0",
			"panic at DependsOn",
		},
		"recalled in time": {
			"a pass whose time is over before it knows for which generation the object was Ready leaves that as it is",
			"v1/nats-pause/crash-after@14+slow-request@21(1h)+until@3",
			"crash-after at patch streams/status default/orders, slow-request at get streams default/orders, which takes 1h",
		},
		"mark of an orphan": {
			"a process that cannot connect yet leaves no mark on what others may adopt",
			"v1/nats-orphan/crash-before@12+panic@24+until@3",
			"crash-before at STREAM.UPDATE orders, panic at Endpoint",
		},
		"mark of an orphan, when the driver hangs": {
			"a process that hangs as it connects is restarted before the object is gone",
			"v1/nats-orphan/crash-before@12+hang@24",
			"crash-before at STREAM.UPDATE orders, hang at Endpoint",
		},
		"indexed": {
			"an object is woken by what it depends on, though the driver panicked when the cache asked for that",
			"v1/nats-life/panic@13",
			"panic at DependsOn",
		},
		"named": {
			"the same on the bare loop",
			"v1/loop-needs/panic@5",
			"panic at Names",
		},
		"reflected": {
			"what a panic kept out of the status of an object that is stopped is shown soon",
			"v1/nats-access/panic@21",
			"panic at Reflect",
		},
		"undecided": {
			"a pass that comes to no decision does not take Ready from what works",
			"v1/nats-invalid/panic@20",
			"panic at ExternalName",
		},
		"decided": {
			"what kept a pass from a decision is over when the next one has one, also while the object is paused",
			"v1/nats-pause/panic@15",
			"panic at ExternalName",
		},
		"hung": {
			"a user who pauses an object whose driver hangs sees both",
			"v1/nats-pause/hang@16",
			"hang at Observe",
		},
		"shown": {
			"what is shown of a resource goes with it, and what was applied is known to the process that did it, whatever becomes of the status",
			"v1/nats-lost/forged@35(5)",
			"forged at a user removes the status of billing",
		},
		"recalled": {
			"Ready stays as it is until it is known for which generation an earlier process wrote it",
			"v1/nats-pause/crash-after@14+refused@20",
			"crash-after at patch streams/status default/orders, refused at get streams default/orders",
		},
		"behind the finalizer": {
			"a new leader whose watch is behind finds that out with one write, and waits for the watch",
			"v1/loop-election/crash-after@4+merged@2(3)+until@1",
			"crash-after at patch probes default/a, merged at events of probe.trimtab.dev/probes",
		},
		"behind the status": {
			"a new leader whose watch is behind does not overwrite a status that it has not seen",
			"v1/loop-election/crash-after@6+merged@4(3)+until@1",
			"crash-after at patch probes/status default/a, merged at events of probe.trimtab.dev/probes",
		},
		"matched": {
			"what an update did is known although the object was paused before the next process saw it",
			"v1/nats-pause/crash-after@17+race@18(4)",
			"crash-after at STREAM.UPDATE orders, race at change orders: {\"metadata\":{\"annotations\":{\"trimtab.dev/paused\":\"true\"}}}",
		},
		"two at work": {
			"an old leader that goes on does not withdraw the record of what its successor has created and reported",
			"v1/folder-life/frozen@5(8)",
			"frozen at mkdir orders, thawed at mkdir orders",
		},
		"wanted again": {
			"a dependent that is going, and is wanted again, is not Ready",
			"v1/component-orders/crash-after@25+race@26(2)",
			"crash-after at delete configmaps default/second, race at want second again",
		},
		"phase": {
			"the phase of a dependent does not depend on whether its creation was recorded",
			"v1/component-orders/crash-after@13",
			"crash-after at patch jobs default/migrate",
		},
		"finalizer": {
			"a finalizer of others stays when a dependent is applied",
			"v1/component-orders/failed@21",
			"failed at get configmaps default/second",
		},
		"holder": {
			"who holds a dependent is asked again if that failed",
			"v1/component-orders/failed@29",
			"failed at get configmaps default/second",
		},
		"guard": {
			"the prune guard counts what was to be there, applied or not",
			"v1/component-external/race@7(3)",
			`race at change a: {"spec":{"objects":[{"apiVersion":"v1","data":{"value":"1"},"kind":"ConfigMap","…`,
		},
		"overdue": {
			"a pass of a component whose time is over before its first step is tried again, and says why",
			"v1/component-handover/slow-answer@17(1h)",
			"slow-answer at get configmaps default/moved, which takes 1h",
		},
		"handed over": {
			"a component applies what is handed over to it, though it looks as applied already",
			"v1/component-handover/forged@38(2)",
			"forged at a user removes the status of a",
		},
		"handed back": {
			"the same the other way around",
			"v1/component-handover/forged@26(5)",
			"forged at a user removes the status of b",
		},
		"gone": {
			"a component that is gone, but shown by an old cache, creates nothing again",
			"v1/component-life/old-cache@26(5)",
			"old-cache at patch bundles default/a",
		},
		"applied": {
			"what was applied is not what the first copy of a new process says, if that is an old one",
			"v1/component-orders/old-cache@34(10)+until@7",
			"old-cache at delete configmaps default/third",
		},
		"worked": {
			"an old copy does not say for which generation the resource was last Ready",
			"v1/nats-invalid/old-cache@23(4)+until@5",
			"old-cache at patch streams/status default/orders",
		},
		"first come": {
			"who is creating a resource already is not overtaken by another who wants it, too",
			"v1/nats-twins/race@3(4)",
			"race at re-create b",
		},
		"level": {
			"the same event is always Normal, or always a Warning",
			"v1/nats-late/failed@10",
			"failed at STREAM.INFO orders",
		},
		"leaked": {
			"an object that an overtaken delete removed takes its resource with it",
			"v1/nats-bucket/overtaken@4",
			"overtaken at delete of settings",
		},
		"nameless": {
			"a panic while naming is not an invalid name",
			"v1/nats-bucket/panic@5",
			"panic at ExternalName",
		},
		"reflected again": {
			"what a panic kept out of the status is shown soon",
			"v1/nats-bucket/panic@14",
			"panic at Reflect",
		},
		"applied at": {
			"a status of a component that could not be written is written again",
			"v1/component-life/failed@10+until@1",
			"failed at patch bundles/status default/a",
		},
		"renderer": {
			"a renderer that does not return holds nobody up",
			"v1/component-life/hang@0",
			"hang at Render",
		},
		"second renderer": {
			"the same when manifests are rendered again",
			"v1/component-life/hang@1",
			"hang at Render",
		},
		"phase of a deletion": {
			"the phase of a dependent does not depend on whether its deletion was recorded",
			"v1/component-orders/crash-after@25",
			"crash-after at delete configmaps default/second",
		},
		"unrecorded creation": {
			"an external resource is created though the component could not be read before that was recorded",
			"v1/component-external/no-answer@6",
			"no-answer at get bundles default/a",
		},
		"unrecorded change": {
			"the same for its change",
			"v1/component-external/no-answer@16",
			"no-answer at get bundles default/a",
		},
		"phase of a correction": {
			"a dependent that was corrected and is not ready shows that, recorded or not",
			"v1/guestbook/crash-after@26",
			"crash-after at patch deployments default/book",
		},
		"refused watch": {
			"a component waits for the ConfigMaps with inventories without asking again and again",
			"v1/component-hooks/crash-after@13+throttled@16",
			"crash-after at delete configmaps default/one, throttled at watch configmaps",
		},
		"lock": {
			"while one asks which cluster this is, nobody else may be held up by a lock",
			"v1/cloud-outage/throttled@1",
			"throttled at get namespaces kube-system/kube-system",
		},
	}
}

// TestFound wants the schedules that found bugs to be those that the document lists, and of scenarios that there are.
func TestFound(t *testing.T) {
	t.Parallel()
	var played []string
	for name, b := range bugs() {
		played = append(played, b.token)
		if !slices.Contains(names(), b.scenario()) {
			t.Errorf("%s: there is no scenario %q", name, b.scenario())
		}
	}
	for _, wrong := range differing(documented(t), played) {
		t.Errorf("docs/found-by-fault.md: %s", wrong)
	}
}

// scenario is that of its token.
func (b bug) scenario() string { return strings.Split(b.token, "/")[1] }

// foundIn are the bugs that were found in a scenario, by their names, and those names in order.
func foundIn(scenario string) (sorted []string, all map[string]bug) {
	all = bugs()
	maps.DeleteFunc(all, func(_ string, b bug) bool { return b.scenario() != scenario })
	return slices.Sorted(maps.Keys(all)), all
}

// wrongReplays says which bugs are back in a scenario, and which of their schedules disturb something else than they did.
func wrongReplays(r fault.Report) (wrong []string) {
	var at []string
	sorted, all := foundIn(r.Scenario)
	for _, name := range sorted {
		b := all[name]
		at = append(at, strings.Split(b.at, ", ")...)
		if slices.ContainsFunc(r.Findings, func(f fault.Finding) bool { return f.Token == b.token }) {
			wrong = append(wrong, fmt.Sprintf("%s, %s: %s", name, b.token, b.why))
		}
	}
	got := strings.Split(strings.Join(r.Disturbed, ", "), ", ") // one that takes an hour has a comma
	if diff := cmp.Diff(at, got[:min(len(at), len(got))]); len(at) > 0 && diff != "" {
		wrong = append(wrong, fmt.Sprintf("the tokens disturb something else: the numbers of calls have changed, find the ones that are meant (-want +got):\n%s", diff))
	}
	return wrong
}

// documented are the schedules with a disturbance in the document's table of bugs.
func documented(t *testing.T) (tokens []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "docs", "found-by-fault.md"))
	if err != nil {
		t.Fatal(err)
	}
	table, _, _ := strings.Cut(string(text), "\n## ")
	for _, m := range regexp.MustCompile("`(v1/[^/`]+/[^`]+)`").FindAllStringSubmatch(table, -1) {
		tokens = append(tokens, m[1])
	}
	return tokens
}

// differing says which schedules of the document are not played, and the other way around.
func differing(listed, played []string) (wrong []string) {
	for _, token := range listed {
		if !slices.Contains(played, token) {
			wrong = append(wrong, token+" is listed, but not played")
		}
	}
	for _, token := range played {
		if !slices.Contains(listed, token) {
			wrong = append(wrong, token+" is played, but not listed")
		}
	}
	return wrong
}
