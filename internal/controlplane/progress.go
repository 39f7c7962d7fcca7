package controlplane

import (
	"fmt"
	"io"
	"os"
	"time"
)

// Phase is what the making of the binary is busy with.
type Phase string

const (
	// Waiting takes the place of all other phases while another process builds.
	Waiting Phase = "waiting"
	// Preparing looks for the go command and at the sources.
	Preparing Phase = "preparing"
	// Downloading gets modules that this machine does not have.
	Downloading Phase = "downloading"
	// Compiling is the long one: minutes, if the build cache is empty.
	Compiling Phase = "compiling"
	// Linking takes ten seconds or more.
	Linking Phase = "linking"
	// Built is told once, at the end.
	Built Phase = "built"
)

// Progress is told about once a second how the making of the binary goes, and at last
// with [Built]. It is not called at all when the binary is found. Nil tells nobody.
type Progress func(Step)

// Step is a moment in the making of the binary.
type Step struct {
	Phase Phase `json:"phase"`
	// Done counts modules while downloading and packages while compiling.
	Done int `json:"done,omitempty"`
	// Total is how many packages there are to compile that the build cache does not hold.
	Total int `json:"total,omitempty"`
	// Elapsed is the time since the call of [Binary].
	Elapsed time.Duration `json:"elapsed"`
	// Other is what the process that is waited for last said of itself, if anything.
	Other *Step `json:"-"`
}

// String is the step in a few words, for example "compiling 812 of 1630 packages, 2m5s".
func (s Step) String() string {
	return fmt.Sprintf("%s, %s", s.what(), s.Elapsed.Round(time.Second))
}

func (s Step) what() string {
	switch s.Phase {
	case Downloading:
		return fmt.Sprintf("downloading modules (%d)", s.Done)
	case Compiling:
		return fmt.Sprintf("compiling %d of %d packages", s.Done, s.Total)
	case Waiting:
		if s.Other == nil {
			return "waiting for another process that builds it"
		}
		return "another process is " + s.Other.what()
	case Preparing, Linking, Built:
		return string(s.Phase)
	}
	return string(s.Phase)
}

// lineEvery is how often progress makes a new line where lines cannot be rewritten.
const lineEvery = 10 * time.Second

// Print returns a Progress that writes to w: one line that is rewritten where w is a
// terminal, elsewhere a line at each new phase and every ten seconds.
func Print(w io.Writer) Progress {
	if IsTerminal(w) {
		return func(s Step) {
			end := ""
			if s.Phase == Built {
				end = "\n"
			}
			fmt.Fprintf(w, "\r\033[Kcontrol plane, built once: %s%s", s, end)
		}
	}
	var last Step
	return func(s Step) {
		if s.Phase == last.Phase && s.Elapsed-last.Elapsed < lineEvery {
			return
		}
		last = s
		fmt.Fprintf(w, "control plane, built once: %s\n", s)
	}
}

// IsTerminal tells whether a person watches w.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb"
}
