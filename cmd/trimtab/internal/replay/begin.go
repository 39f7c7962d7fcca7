package replay

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/cmd/trimtab/internal/inspect"
	"github.com/trimtab-dev/trimtab/trace"
)

// records are annotations that the operator writes. All others are the users'.
func records() []string {
	return []string{api.AnnotationExternal, api.AnnotationLastApplied, api.AnnotationLateInitialized, api.AnnotationPasswords}
}

// begun is the object with which a pass began, as far as that can be told from the object of now. changed says what is not as it is
// now.
func begun(now *unstructured.Unstructured, p inspect.Pass) (o *unstructured.Unstructured, changed []string) {
	o = now.DeepCopy()
	start, _ := p.Start()
	tell := func(format string, args ...any) { changed = append(changed, fmt.Sprintf(format, args...)) }
	if o.GetGeneration() != start.Generation {
		tell("Its spec is that of generation %d; the pass began with generation %d.", o.GetGeneration(), start.Generation)
		o.SetGeneration(start.Generation)
	}
	if !start.Deleting && o.GetDeletionTimestamp() != nil {
		tell("It was not being deleted yet.")
		undelete(o)
	}
	if !start.Deleting && wrote(p, "", "metadata.finalizers") {
		tell("The pass added the finalizer, which is left out.")
		o.SetFinalizers(nil)
		if wrote(p, "", "metadata.annotations") {
			tell("The pass wrote the operator's record, which is left out.")
			unrecord(o)
		}
	}
	if text := takeBackStatus(o, p, start.Generation); text != "" {
		tell("%s", text)
	}
	return o, changed
}

func undelete(o *unstructured.Unstructured) {
	unstructured.RemoveNestedField(o.Object, "metadata", "deletionTimestamp")
	unstructured.RemoveNestedField(o.Object, "metadata", "deletionGracePeriodSeconds")
}

// takeBackStatus makes the status one that the pass changes, if it did, and says how.
func takeBackStatus(o *unstructured.Unstructured, p inspect.Pass, generation int64) string {
	was, changes := stateBefore(p)
	switch {
	case changes && was == "":
		unstructured.RemoveNestedField(o.Object, "status")
		return "It had no status yet."
	case !wrote(p, "status", ""):
		return ""
	}
	status, is := o.Object["status"].(map[string]any)
	if !is {
		return ""
	}
	status["observedGeneration"] = generation - 1 // the pass finds a status that differs, as it did
	if changes {
		status["state"] = was
		return fmt.Sprintf("Its state was %s; the conditions are those of now.", was)
	}
	return "The pass wrote the status, whose former values are not recorded."
}

// stateBefore is the state with which a pass began, if the pass changed it.
func stateBefore(p inspect.Pass) (state string, changes bool) {
	for _, r := range p.Records {
		if e, is := r.Event.(trace.Transition); is {
			return e.From, true
		}
	}
	return "", false
}

// wrote reports whether a pass wrote a field, or anything of a subresource.
func wrote(p inspect.Pass, subresource, field string) bool {
	return slices.ContainsFunc(p.Records, func(r trace.Record) bool {
		e, is := r.Event.(trace.Write)
		return is && e.Err == "" && e.Subresource == subresource && (field == "" || slices.Contains(e.Fields, field))
	})
}

// unrecord removes the operator's own annotations.
func unrecord(o *unstructured.Unstructured) {
	annotations := o.GetAnnotations()
	for _, key := range records() {
		delete(annotations, key)
	}
	o.SetAnnotations(annotations)
}

// unchanged reports whether the object is as the pass left it.
func unchanged(now *unstructured.Unstructured, p inspect.Pass) bool {
	start, _ := p.Start()
	version := start.ResourceVersion
	for _, r := range p.Records {
		if e, is := r.Event.(trace.Write); is && e.ResourceVersion != "" {
			version = e.ResourceVersion
		}
	}
	return version == now.GetResourceVersion()
}

// creating is an object for which the operator creates the resource that the pass found. It is nil if the operator had no record of a
// resource when the pass began. unlike says what of the resource is not as it was.
func creating(o *unstructured.Unstructured, p inspect.Pass) (before *unstructured.Unstructured, unlike []string) {
	call, observed := firstObserved(p)
	recorded := o.GetAnnotations()[api.AnnotationExternal] != ""
	missing := call.Result == "Missing"
	switch {
	case !recorded && observed && !missing:
		return nil, []string{"the resource existed, and the operator had no record of it"}
	case !recorded:
		return nil, nil
	case !observed || missing || call.Err != "":
		unlike = append(unlike, "the operator had a record of the resource, which was not seen")
	}
	before = o.DeepCopy()
	before.SetFinalizers(nil)
	unrecord(before)
	unstructured.RemoveNestedField(before.Object, "status")
	undelete(before)
	for _, d := range foundDifferences(p) {
		if !setField(before.Object, d.Path, d.Have) {
			unlike = append(unlike, fmt.Sprintf("the resource differed: %s: want %s, have %s", d.Path, d.Want, d.Have))
		}
	}
	if !equality.Semantic.DeepEqual(before.Object["spec"], o.Object["spec"]) {
		before.SetGeneration(o.GetGeneration() - 1) // the spec of o is the next one
	}
	return before, unlike
}

// firstObserved is the first call that observed the resource.
func firstObserved(p inspect.Pass) (call trace.Call, observed bool) {
	for _, r := range p.Records {
		if e, is := r.Event.(trace.Call); is && !e.Mutating {
			return e, true
		}
	}
	return trace.Call{}, false
}

// foundDifferences are the differences that a pass found before it changed anything.
func foundDifferences(p inspect.Pass) (all []trace.Drift) {
	for _, r := range p.Records {
		switch e := r.Event.(type) {
		case trace.Drift:
			all = append(all, e)
		case trace.Call:
			if e.Mutating {
				return all
			}
		case trace.Start, trace.Decision, trace.Write, trace.Transition, trace.End:
		}
	}
	return all
}

// setField sets a field that an object has to a value in the form of a trace.Drift. It reports whether it could.
func setField(object map[string]any, path, value string) bool {
	fields := strings.Split(path, ".")
	if _, has, err := unstructured.NestedFieldNoCopy(object, fields...); !has || err != nil {
		return false
	}
	if value == "(unset)" {
		unstructured.RemoveNestedField(object, fields...)
		return true
	}
	var v any
	if json.Unmarshal([]byte(value), &v) != nil { // it was cut, or is hidden
		return false
	}
	return unstructured.SetNestedField(object, v, fields...) == nil
}
