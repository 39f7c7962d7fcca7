package fault

import "slices"

// mutants are bugs that engines like ours have had, or that ours could have.
func mutants() []mutant {
	return slices.Concat(writeMutants(), retryMutants(), ownershipMutants(), lifeMutants(), callMutants(), statusMutants(), forgedMutants(), panicMutants(), hangMutants(), vendorMutants(), answerMutants(), componentMutants(), orderMutants())
}

// writeMutants are bugs of the loop in what it writes.
func writeMutants() []mutant {
	return []mutant{
		{
			what: "the finalizer is written after the first pass",
			file: "loop/pass.go", old: "	if err := p.ensureFinalizer(ctx); err != nil {\n",
			mutated:  "	var err error\n	if p.state != \"\" {\n		err = p.ensureFinalizer(ctx)\n	}\n	if err != nil {\n",
			scenario: "nats-bucket", invariants: []string{"I4"},
		},
		{
			what: "an unchanged status is written again",
			file: "loop/commit.go", old: "	if write.same(p.base) && (write.common || !p.c.memory.touched(p.base)) {\n		p.remember(r, observed, false)\n		return nil\n	}\n",
			mutated: "", scenario: "nats-bucket", invariants: []string{"I5"},
		},
		{
			what: "an event is recorded in every pass",
			file: "loop/commit.go", old: "	if write.same(p.base) && (write.common || !p.c.memory.touched(p.base)) {\n		p.remember(r, observed, false)\n		return nil\n	}\n",
			mutated:  "	if write.same(p.base) && (write.common || !p.c.memory.touched(p.base)) {\n		p.remember(r, observed, false)\n		p.event(\"Normal\", \"Reconciled\", \"observed again\")\n		return nil\n	}\n",
			scenario: "nats-bucket", invariants: []string{"I5"},
		},
		{
			what: "observedGeneration is that of a newer copy of the object",
			file: "external/internal/engine/report.go", old: "	r := p.compose(d)\n",
			mutated:  "	if fresh, ok := p.obj.DeepCopyObject().(Object); ok && p.run.Client().Get(ctx, client.ObjectKeyFromObject(p.obj), fresh) == nil {\n		p.facts.Generation = fresh.GetGeneration()\n	}\n	r := p.compose(d)\n",
			scenario: "nats-bucket", invariants: []string{"I7", "I8"}, token: "race@5(2)",
		},
		{
			what: "observedGeneration is one too high",
			file: "loop/commit.go", old: "	s.ObservedGeneration = generation\n", mutated: "	s.ObservedGeneration = generation + 1\n",
			scenario: "nats-bucket", invariants: []string{"I7"},
		},
		{
			what: "lastTransitionTime moves although nothing changed",
			file: "conditions/report.go", old: "before != nil && before.Status == c.Status {", mutated: "before != nil && before.Status == c.Status && before.Reason == c.Reason && before.ObservedGeneration == generation {",
			scenario: "nats-bucket", invariants: []string{"I9"},
		},
	}
}

// retryMutants are bugs of the loop in what it repeats.
func retryMutants() []mutant {
	return []mutant{
		{
			what: "the finalizer is removed although the cleanup failed",
			file: "loop/pass.go", old: "	if o.kind == cleanupDone {\n", mutated: "	if o.kind == cleanupDone || o.kind == cleanupFailed {\n",
			scenario: "nats-bucket", invariants: []string{"I2", "I6"}, token: "failed@20", telling: true,
		},
		{
			what: "a failure is retried without back-off",
			file: "loop/decide_retry.go", old: "		wait = p.delay(l.attempts, share(l.attempts))\n", mutated: "		wait = time.Millisecond\n",
			scenario: "nats-denied", invariants: []string{"I13"},
		},
		{
			what: "a write that failed is not repeated",
			file: "loop/schedule.go", old: "		next.after = min(time.Second<<min(r.unwritten-1, 10), 10*time.Minute)\n", mutated: "		next.never = true\n",
			scenario: "nats-bucket", invariants: []string{"I1"}, token: "failed@4+until@1",
		},
		{
			what: "after a conflict the pass counts as done",
			file: "loop/schedule.go", old: "	return ending{outcome: outdatedPass, after: min(after<<min(n/2, 10), time.Second)}\n",
			mutated: "	_ = after\n	return ending{outcome: \"Done\"}\n", scenario: "nats-bucket", invariants: []string{"I1"}, token: "conflict@4+until@1",
		},
		{
			what: "a failed status write is swallowed",
			file: "loop/pass.go", old: "	if err := p.commit(ctx, verdictOf(o, next.never, p.info)); err != nil {\n		return p.commitFailed(err, next)\n	}\n",
			mutated:  "	_ = p.commit(ctx, verdictOf(o, next.never, p.info))\n",
			scenario: "nats-bucket", invariants: []string{"I1"}, token: "failed@8+until@1",
		},
		{
			what: "a cleanup in progress is never observed again",
			file: "loop/schedule.go", old: "			next.after = o.after\n		case cleanupFailed:\n", mutated: "			next.never, next.after = true, 0\n		case cleanupFailed:\n",
			scenario: "nats-bucket", invariants: []string{"I6", "I1"}, token: "crash-after@20", telling: true,
		},
	}
}

// ownershipMutants are bugs in whose a thing is, and when it goes.
func ownershipMutants() []mutant {
	return []mutant{
		{
			what: "after a failed delete, the object is let go",
			file: "external/internal/decide/deletion.go", old: "		return decideFailedDeletion(f)\n", mutated: "		return removeFinalizer(30, ReasonAbsent)\n",
			scenario: "nats-bucket", invariants: []string{"I2", "I6"}, token: "failed@20",
		},
		{
			what: "a resource that is not visible yet counts as deleted",
			file: "external/internal/decide/deletion.go", old: "	case CreationSeen:\n		return f.DeleteAccepted || f.SinceCreate >= f.Grace\n	case CreationPossible:\n		return f.SinceCreate >= f.Grace && !f.maybeHidden()\n	case CreationCalled:\n		return f.SinceCreate >= f.Grace\n",
			mutated:  "	case CreationSeen, CreationPossible, CreationCalled:\n		return true\n",
			scenario: "nats-late", invariants: []string{"I2"}, token: "race@5(0)", telling: true,
		},
		{
			what: "a resource of another owner is deleted",
			file: "external/internal/decide/claim.go", old: "	case OwnerNobody, OwnerNamesake, OwnerOther, OwnerForeign, OwnerStated:\n	}\n	return false\n",
			mutated: "	case OwnerNobody, OwnerNamesake, OwnerOther, OwnerForeign, OwnerStated:\n	}\n	return true\n", scenario: "nats-occupied", invariants: []string{"I10", "I1"},
		},
		{
			what: "a resource of another owner is taken over",
			file: "external/internal/decide/claim.go", old: "	if f.Policy.Adoption >= least {\n", mutated: "	if f.Policy.Adoption >= least || true {\n",
			scenario: "nats-occupied", invariants: []string{"I10", "I1", "I13"},
		},
		{
			what: "a resource of another object counts as ours",
			file: "external/internal/decide/owner.go", old: "	case uid != \"\" && uid == c.Mark.UID:\n		return OwnerUs\n", mutated: "	case uid != \"\":\n		return OwnerUs\n",
			scenario: "nats-twins", invariants: []string{"I10", "I1"},
		},
		{
			what: "the orphan policy is ignored",
			file: "external/internal/decide/deletion.go", old: "	case f.Policy.Orphan || !f.Policy.Delete:\n		return decideOrphan(f)\n", mutated: "",
			scenario: "nats-orphan", invariants: []string{"I1", "I2", "I10"},
		},
		{
			what: "the mark stays on an orphaned resource that was not observed",
			file: "external/internal/decide/deletion.go", old: "f.Record.Trouble != TroubleEndpoint && !neverCreated(f)\n", mutated: "f.Record.Trouble != TroubleEndpoint && f.Creation == CreationSeen\n",
			scenario: "nats-orphan", invariants: []string{"I1", "I2"}, token: "crash-before@11+until@3",
		},
		{
			what: "the mark stays on an orphaned resource",
			file: "external/internal/decide/deletion.go", old: "		done.Action = ActionUnmark\n", mutated: "",
			scenario: "nats-orphan", invariants: []string{"I1", "I2"},
		},
	}
}

// lifeMutants are bugs in names, dependencies and pauses.
func lifeMutants() []mutant {
	return []mutant{
		{
			what: "names differ in every process",
			file: "external/internal/engine/engine.go", old: "	if err == nil {\n		err = e.fitName(name)\n", mutated: "	name += \"-\" + time.Now().Format(\"150405\")\n	if err == nil {\n		err = e.fitName(name)\n",
			scenario: "nats-bucket", invariants: []string{"I1", "I3", "I2"},
		},
		{
			what: "dependencies are not waited for",
			file: "external/internal/engine/dependencies.go", old: "	if e.driver.DependsOn == nil {\n		return n, nil\n	}\n", mutated: "	if true {\n		return n, nil\n	}\n",
			scenario: "nats-life", invariants: []string{"I1"},
		},
		{
			what: "a pause is ignored",
			file: "external/internal/decide/life.go", old: "	if f.Paused != PauseNone {\n		return decidePaused(f)\n	}\n	if f.Record", mutated: "	if f.Record",
			scenario: "nats-pause", invariants: []string{"I1"},
		},
	}
}

// callMutants are bugs in how often the outside is asked.
func callMutants() []mutant {
	return []mutant{
		{
			what: "resources are observed every ten seconds",
			file: "external/internal/engine/engine.go", old: "		return 10 * time.Minute\n	default:\n		return d\n	}\n}\n\nfunc (e *Engine) callDeadline()",
			mutated:  "		return 10 * time.Second\n	default:\n		return d\n	}\n}\n\nfunc (e *Engine) callDeadline()",
			scenario: "nats-bucket", invariants: []string{"I5", "I13", "I1"},
		},
		{
			what: "a failed call is not retried",
			file: "external/internal/decide/failure.go", old: "Reason: failureReason(a), Wake: WakeBackoff}\n	d.Show = failedShow(a.Of)\n",
			mutated:  "Reason: failureReason(a), Wake: WakeEvent}\n	d.Show = failedShow(a.Of)\n",
			scenario: "nats-bucket", invariants: []string{"I1"}, token: "failed@5+until@1",
		},
		{
			what: "the resource is updated without a difference",
			file: "external/internal/engine/resource.go", old: "	if !p.facts.Differs.Any() && (p.seen.Phase", mutated: "	p.facts.Differs.InPlace = p.facts.Differs.InPlace || !p.facts.Did.Update\n	if !p.facts.Differs.Any() && (p.seen.Phase",
			scenario: "nats-bucket", invariants: []string{"I5", "I13", "I1"},
		},
		{
			what: "every error of the API is permanent",
			file: "external/internal/engine/calls.go", old: "	c.text = hide(c.text, secrets)\n",
			mutated:  "	c.text = hide(c.text, secrets)\n	c.class = decide.ClassTerminal\n",
			scenario: "nats-bucket", invariants: []string{"I1"}, token: "failed@5+until@1",
		},
	}
}

// statusMutants are bugs in what people are told, and in believing it.
func statusMutants() []mutant {
	return []mutant{
		{
			what: "decisions depend on the status",
			file: "external/internal/engine/pass.go", old: "	for range mostSteps {\n",
			mutated: "	if s := p.obj.TrimtabStatus(); s.State == string(decide.StateSucceeded) && s.AppliedGeneration == p.obj.GetGeneration() && p.obj.GetDeletionTimestamp().IsZero() {\n" +
				"		return decide.Decision{Row: 17, State: decide.StateSucceeded, Reason: decide.ReasonAvailable, Wake: decide.WakeDrift, Show: decide.Show{Ready: decide.ShowTrue}}, nil\n	}\n	for range mostSteps {\n",
			scenario: "nats-bucket", invariants: []string{"I1"},
		},
		{
			what: "Ready is reported before any observation",
			file: "external/internal/decide/failure.go", old: "	s := Show{Failed: ShowTrue}\n", mutated: "	s := Show{Failed: ShowTrue, Ready: ShowTrue}\n",
			scenario: "nats-denied", invariants: []string{"I1"},
		},
		{
			what: "a failed observation is not repeated while paused",
			file: "external/internal/decide/life.go", old: "the state of the resource is unknown\n		d.Wake = WakePoll\n", mutated: "nobody knows how the thing is\n",
			scenario: "nats-pause", invariants: []string{"I1"}, token: "failed@10+until@2",
		},
		{
			what: "a failed observation is not repeated while waiting",
			file: "external/internal/decide/life.go", old: "	case f.Last.Failed:\n		d.Wake = WakePoll\n	case !f.Seen.Observed:", mutated: "	case f.Last.Failed:\n	case !f.Seen.Observed:",
			scenario: "nats-lost", invariants: []string{"I1"}, token: "failed@38+until@4",
		},
		{
			what: "a resource deleted with its dependency is observed once",
			file: "external/internal/decide/life.go", old: "		if f.SinceUnready < f.Grace {", mutated: "		if false {",
			scenario: "nats-lost", invariants: []string{"I1"}, token: "lag@38+until@4",
		},
		{
			what: "conditions that are False describe the past",
			file: "external/internal/decide/report.go", old: "	case occurred:\n		b.setFalse(kind, \"NotInProgress\", \"\")\n",
			mutated:  "	case occurred && b.f.LastReport.State != \"\":\n		b.setFalse(kind, \"NotInProgress\", \"\")\n",
			scenario: "nats-bucket", invariants: []string{"I1", "I5"},
		},
		{
			what: "Ready is reported for a spec that is not applied",
			file: "external/internal/decide/report.go", old: "	case d.Show.Ready == ShowTrue && !f.Differs.Any():\n", mutated: "	case d.Show.Ready == ShowTrue:\n",
			scenario: "nats-pause", invariants: []string{"I1"},
		},
		{
			what: "a Ready that is kept is reported for the new spec",
			file: "external/internal/decide/report.go", old: "	return f.ReadyFor, d.Show.Ready == ShowTrue\n",
			mutated:  "	return min(f.Generation, f.ReadyFor*f.Generation), d.Show.Ready == ShowTrue\n",
			scenario: "nats-life", invariants: []string{"I8"}, token: "failed@21+until@3",
		},
	}
}

// hangMutants are bugs in what becomes of the author's code where it never returns.
func hangMutants() []mutant {
	return []mutant{
		{
			what: "a pass waits for a call that does not return",
			file: "external/internal/engine/calls.go", old: "		got = p.abandon(a, late)\n", mutated: "		got = <-late\n",
			scenario: "nats-bucket", invariants: []string{"I20"}, token: "hang@9",
		},
	}
}

// answerMutants are bugs in what the state that an API returns with its answers proves.
func answerMutants() []mutant {
	return []mutant{
		{
			what: "what the API returned in one account is acted on in another",
			file: "external/internal/engine/calls.go", old: "	if p.facts.Seen.Source == decide.SourceMemory && (p.startsOver || endpoint != p.rememberedAt) {", mutated: "	if false {",
			scenario: "cloud-moves", invariants: []string{"I1", "I10"},
		},
		{
			what: "an object is deleted by what the API returned in another account",
			file: "external/internal/engine/calls.go", old: "	if p.facts.Seen.Source == decide.SourceMemory && (p.startsOver || endpoint != p.rememberedAt) {", mutated: "	if false && p.id != \"\" {",
			scenario: "cloud-left", invariants: []string{"I1", "I10"},
		},
		{
			what: "an answer without our mark is taken as proof",
			file: "external/internal/decide/decide.go", old: "		return !f.Unconfirmed && (f.Seen.Phase == PhaseMissing || f.Seen.Ours() && f.Seen.Phase != PhaseFailed && f.Seen.Phase != PhaseDeleting)\n", mutated: "		return !f.Unconfirmed\n",
			scenario: "cloud-answers", invariants: []string{"I1"},
		},
		{
			what: "a delete that was accepted is taken for done",
			file: "external/internal/engine/calls.go", old: "		if response.Gone && err == nil && !given.begins() {\n", mutated: "		if _ = response; err == nil {\n",
			scenario: "cloud-answers-late", invariants: []string{"I1", "I2"},
		},
		{
			what: "what is said to be gone and is not is deleted for ever",
			file: "external/internal/decide/life.go", old: "	case f.SameUpdates >= NotConvergingAfter, f.FutileDeletes >= NotConvergingAfter:\n", mutated: "	case f.SameUpdates >= NotConvergingAfter:\n",
			scenario: "cloud-kept", invariants: []string{"I1", "I13"},
		},
		{
			what: "all accounts share a client",
			file: "external/internal/engine/connector.go", old: "	s := e.clients.of(who.key, l.scope)\n", mutated: "	s := e.clients.of(who.key, \"all\")\n",
			scenario: "cloud-moves", invariants: []string{"I1", "I10"},
		},
	}
}

// forgedMutants are bugs in what becomes of a status that somebody writes.
func forgedMutants() []mutant {
	return []mutant{
		{
			what: "the reflected status stays when the resource is gone",
			file: "external/internal/engine/reflect.go", old: "	if fields := statusField(reflect.ValueOf(p.obj)); fields.IsValid() {\n", mutated: "	if fields := statusField(reflect.ValueOf(p.obj)); false {\n",
			scenario: "nats-lost", invariants: []string{"I1"}, token: "forged@35(5)",
		},
		{
			what: "appliedGeneration is read from the status",
			file: "loop/commit.go", old: "		case k.applied == nil:\n			k.applied, k.recalled =", mutated: "		default:\n			k.applied, k.recalled =",
			scenario: "nats-lost", invariants: []string{"I1"}, token: "forged@35(5)",
		},
		{
			what: "a new process keeps what an old copy says about the generation that was applied",
			file: "loop/commit.go", old: "	return p.c.compare(ctx, p.key, p.base)\n", mutated: "	return nil\n",
			scenario: "cloud-moves", invariants: []string{"I1"}, token: "old-cache@13(4)+until@4",
		},
		{
			what: "a new process takes for certain what an old copy says about Ready",
			file: "external/internal/engine/report.go", old: "	if err := p.run.Certain(ctx); err != nil {\n		return err\n	}\n	p.track.recalled = true\n", mutated: "	p.track.recalled = true\n",
			scenario: "nats-invalid", invariants: []string{"I1"}, token: "old-cache@23(4)+until@5", telling: true,
		},
	}
}

// panicMutants are bugs in what becomes of a panic of the author's code.
func panicMutants() []mutant {
	return []mutant{
		{
			what: "a panic in ExternalName is reported as an invalid name",
			file: "external/internal/engine/identity.go", old: "		if unasked(err) && p.obj.GetDeletionTimestamp().IsZero() {\n", mutated: "		if false {\n",
			scenario: "nats-bucket", invariants: []string{"I1"}, token: "panic@5+until@1",
		},
		{
			what: "a status that is incomplete after a panic stays so",
			file: "external/internal/engine/report.go", old: "	if p.unreflected != nil && (d.Wake == decide.WakeEvent || d.Wake == decide.WakeDependency || d.Wake == decide.WakeDrift) {\n", mutated: "	if false {\n",
			scenario: "nats-bucket", invariants: []string{"I1"}, token: "panic@14+until@1", telling: true,
		},
	}
}

// vendorMutants are bugs that only certain APIs, or an outage, bring out.
func vendorMutants() []mutant {
	return []mutant{
		{
			what: "an ignored difference prevents Ready=True",
			file: "external/internal/decide/facts.go", old: "{ return d.InPlace || d.Recreate || d.Unsupported }", mutated: "{ return d.InPlace || d.Recreate || d.Unsupported || d.Ignored }",
			scenario: "nats-ignored", invariants: []string{"I1"},
		},
		{
			what: "a dependency is ready whoever wrote its Ready",
			file: "external/internal/engine/ownready.go", old: "	return status && generation\n", mutated: "	return status || generation || true\n",
			scenario: "nats-forged", invariants: []string{"I1"},
		},
		{
			what: "a degraded resource is not observed soon",
			file: "external/internal/decide/insync.go", old: "StateVerifying, ReasonDegraded, WakePoll, ShowFalse\n", mutated: "StateVerifying, ReasonDegraded, WakeDrift, ShowFalse\n",
			scenario: "nats-copying", invariants: []string{"I1"},
		},
		{
			what: "after a crash, a created but unmarked resource is not ours",
			file: "external/internal/engine/identity.go", old: "Untried: p.track.creation <= decide.CreationRefused,", mutated: "Untried: p.track.creation < decide.CreationCalled,",
			scenario: "cloud-later", invariants: []string{"I1"}, token: "crash-after@5+until@1",
		},
		{
			what: "a resource that existed before counts as just created",
			file: "external/internal/engine/engine.go", old: "	return (e.options.Unmarked || e.options.MarkLater) && !e.options.AssignedIDs\n", mutated: "	return e.options.Unmarked\n",
			scenario: "cloud-occupied", invariants: []string{"I1"},
		},
		{
			what: "the delay that an API asks for is ignored",
			file: "external/internal/engine/scope.go", old: "		return bounded(hint, leastThrottle, mostThrottle)\n", mutated: "		return leastThrottle\n",
			scenario: "cloud-outage", invariants: []string{"I1"},
		},
		{
			what: "each attempt during an outage is reported",
			file: "external/internal/decide/life.go", old: "{ return cmp.Or(f.LastReport.ObserveFailure, ReasonUnreachable) }", mutated: "{ return cmp.Or(ReasonUnreachable, f.LastReport.ObserveFailure) }",
			scenario: "cloud-outage", invariants: []string{"I1"},
		},
	}
}

// componentMutants are bugs in the engine of components.
func componentMutants() []mutant {
	return []mutant{
		{
			what: "a status write that failed is not written again",
			file: "component/worker.go", old: "	applied = applied || ready && (status.ProcessingSince != nil || status.LastAppliedAt == nil) // and that was not written\n",
			mutated: "	_ = ready\n", scenario: "component-life", invariants: []string{"I1"}, token: "failed@10+until@1",
		},
		{
			what: "an edit of a dependent is not noticed",
			file: "component/internal/engine/verify.go", old: "		return live.Print.Owned != base.Owned || m.altered\n", mutated: "		return m.altered\n",
			scenario: "component-life", invariants: []string{"I1"},
		},
		{
			what: "dependents are created before they are recorded",
			file: "component/internal/engine/engine.go", old: "m.recorded && leavesAlike(before, o.Item)", mutated: "leavesAlike(before, o.Item) || true",
			scenario: "component-undone", invariants: []string{"I1"}, token: "crash-after@8+race@9(0)",
		},
		{
			what: "the inventory forgets what is not deleted yet",
			file: "component/internal/engine/report.go", old: "!m.forgotten {\n			inventory = ", mutated: "!m.forgotten && (m.wanted != nil || p.deleting) {\n			inventory = ",
			scenario: "component-life", invariants: []string{"I1"},
		},
		{
			what: "what could not be recorded of an external resource is forgotten",
			file: "component/internal/engine/nodes.go", old: "		p.rendered.forget(p.c.UID) // the next pass needs the manifests, to record what this one did not\n",
			mutated:  "",
			scenario: "component-external", invariants: []string{"I1"}, token: "no-answer@5+until@1",
		},
		{
			what: "a renderer that does not return holds its pass",
			file: "component/author.go", old: "	a.abandon(obj, what, answers)\n	return a.stuck(obj.GetUID())\n", mutated: "	return <-answers\n",
			scenario: "component-life", invariants: []string{"I20"}, token: "hang@0",
		},
	}
}

// orderMutants are bugs in the order in which dependents come and go, and in what stays.
func orderMutants() []mutant {
	return []mutant{
		{
			what: "a component goes before its dependents",
			file: "component/decide_state.go", old: "	case s.Ready:\n		return conclusion{\n			State: StateDeleting,", mutated: "	case s.Ready || s.Waiting != \"\":\n		return conclusion{\n			State: StateDeleting,",
			scenario: "component-orders", invariants: []string{"I1", "I6"},
		},
		{
			what: "waves are applied together",
			file: "component/internal/engine/stages.go", old: "return applyStages*int(m.item.ApplyOrder) + m.stage", mutated: "return m.stage",
			scenario: "component-orders", invariants: []string{"I1"},
		},
		{
			what: "waves are deleted together",
			file: "component/internal/engine/stages.go", old: "	wave := deleteStages * int(m.item.DeleteOrder)\n", mutated: "	wave := 0\n",
			scenario: "component-orders", invariants: []string{"I1"},
		},
		{
			what: "a dependent is purged before that is recorded",
			file: "component/internal/engine/do.go", old: "		m.item.Phase, m.again = api.PhaseCompleting, soon\n", mutated: "		m.item.Phase, m.again, m.completed = api.PhaseCompleting, soon, true\n",
			scenario: "component-orders", invariants: []string{"I1"}, token: "crash-after@16+until@3",
		},
		{
			what: "dependents that are to stay are deleted",
			file: "component/internal/engine/facts.go", old: "	case api.DeletePolicyOrphan:\n		return true\n", mutated: "	case api.DeletePolicyOrphan:\n		return false\n",
			scenario: "component-orders", invariants: []string{"I1"},
		},
		{
			what: "finalizers of others are taken over",
			file: "internal/apply/ownership.go", old: "o.taken(withoutFinalizers(set))", mutated: "o.taken(set)",
			scenario: "component-orders", invariants: []string{"I1"}, token: "failed@21+until@6",
		},
		{
			what: "deletes have no preconditions",
			file: "internal/apply/client.go", old: "		PropagationPolicy: new(metav1.DeletePropagationBackground), Preconditions: only,\n", mutated: "		PropagationPolicy: new(metav1.DeletePropagationBackground),\n",
			scenario: "component-hooks", invariants: []string{"I10"}, token: "replaced@13",
		},
	}
}
