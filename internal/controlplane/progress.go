package controlplane

import (
	"fmt"
	"io"
	"os"
	"time"
)

// Phase is a phase of the build.
type Phase string

const (
	// Waiting replaces all other phases while another process is building.
	Waiting Phase = "waiting"
	// Preparing finds the go command and examines the sources.
	Preparing Phase = "preparing"
	// Fetching downloads a control plane that was released.
	Fetching Phase = "fetching"
	// Downloading downloads missing modules.
	Downloading Phase = "downloading"
	// Compiling takes minutes if the build cache is empty.
	Compiling Phase = "compiling"
	// Linking takes ten seconds or more.
	Linking Phase = "linking"
	// Built is reported once, at the end.
	Built Phase = "built"
)

// Progress is called about once a second during a build, and at the end with [Built]. It is not called
// if the binary exists already. Nil means that progress is not reported.
type Progress func(Step)

// Step is the state of a build at one moment.
type Step struct {
	Phase Phase `json:"phase"`
	// Done is the number of megabytes or modules downloaded, or of packages compiled.
	Done int `json:"done,omitempty"`
	// Total is the number of megabytes to download or packages to compile; 0 if it is unknown.
	Total int `json:"total,omitempty"`
	// Elapsed is the time since [Binary] was called.
	Elapsed time.Duration `json:"elapsed"`
	// Other is the last step that the other process published, if any, while Waiting.
	Other *Step `json:"-"`
	// Instead is the sentence that says why a released control plane is built. It is in one step.
	Instead string `json:"-"`
}

// String returns the step in a few words, for example "compiling 812 of 1630 packages, 2m5s".
func (s Step) String() string {
	return fmt.Sprintf("%s, %s", s.what(), s.Elapsed.Round(time.Second))
}

func (s Step) what() string {
	switch s.Phase {
	case Fetching:
		if s.Total == 0 {
			return "downloading the released one"
		}
		return fmt.Sprintf("downloading the released one, %d of %d MB", s.Done, s.Total)
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

// lineEvery is how often progress is printed where lines cannot be rewritten.
const lineEvery = 10 * time.Second

// Print returns a Progress that writes to w: one line that is rewritten if w is a terminal, otherwise
// a line for each new phase and every ten seconds.
func Print(w io.Writer) Progress {
	if IsTerminal(w) {
		return func(s Step) {
			end := ""
			if s.Phase == Built {
				end = "\n"
			}
			if s.Instead != "" {
				fmt.Fprintf(w, "\r\033[K%s\n", s.Instead)
			}
			fmt.Fprintf(w, "\r\033[Kthe control plane: %s%s", s, end)
		}
	}
	var last Step
	return func(s Step) {
		if s.Instead != "" {
			fmt.Fprintln(w, s.Instead)
		}
		if s.Phase == last.Phase && s.Elapsed-last.Elapsed < lineEvery {
			return
		}
		last = s
		fmt.Fprintf(w, "the control plane: %s\n", s)
	}
}

// IsTerminal reports whether w is a terminal.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb"
}
