package judge

import (
	"slices"
	"strings"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/run"
)

// Recreated returns how a run in which a user re-creates an object at rest ends otherwise than one in which it was created
// once. Runs that are compared with that one are not blamed for the same.
func (j *Judge) Recreated(job run.Job, r run.Result, once *history.Run, elsewhere string) (Finding, bool) {
	end := r.Run.EndingAs(job.Last, r.Run.Steps[job.Last+1].State)
	end.Steps[job.Last].Name = r.Run.Steps[job.Last+1].Name
	found := j.divergences(end, once)
	if len(found) == 0 {
		return Finding{}, false
	}
	v := found[0]
	j.excuse(once, v.Subjects)
	v.Message = "re-created at rest, " + v.Message + elsewhere
	v.Subjects = append([]string{"re-created at rest"}, v.Subjects...)
	return j.finding(job, r, once, []history.Violation{v})
}

// Differing says in what a run ends otherwise than another one, as the subjects of a violation.
func (j *Judge) Differing(r, like *history.Run) (subjects []string) {
	for _, v := range j.divergences(r, like) {
		subjects = append(subjects, v.Subjects...)
	}
	return subjects
}

// EndsAs reports whether a run ends as another one.
func (j *Judge) EndsAs(r, like *history.Run) bool { return endsAs(r, like) }

func (j *Judge) divergences(r, like *history.Run) []history.Violation {
	return slices.DeleteFunc(j.against(like)(r), func(v history.Violation) bool { return v.Invariant != "I1" })
}

// excuse notes what runs that are compared with another one are not blamed for.
func (j *Judge) excuse(like *history.Run, subjects []string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.excused == nil {
		j.excused = map[*history.Run][]string{}
	}
	j.excused[like] = append(j.excused[like], subjects...)
}

// blamed leaves out how a run ends otherwise than another one if that is excused.
func (j *Judge) blamed(found []history.Violation, like *history.Run) []history.Violation {
	j.mu.Lock()
	defer j.mu.Unlock()
	excused := j.excused[like]
	return slices.DeleteFunc(found, func(v history.Violation) bool {
		return v.Invariant == "I1" && len(excused) > 0 && !slices.ContainsFunc(v.Subjects, func(s string) bool { return !slices.Contains(excused, s) })
	})
}

// titled says with what a run was compared, if that is not the undisturbed run.
func titled(found []history.Violation, like *history.Run) []history.Violation {
	if like == nil || like.Title == "" {
		return found
	}
	for i := range found {
		v := &found[i]
		v.Message = strings.ReplaceAll(v.Message, history.Undisturbed, like.Title)
		v.Title = strings.ReplaceAll(v.Title, history.Undisturbed, like.Title)
	}
	return found
}
