package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/trimtab-dev/trimtab/cmd/trimtab/internal/model"
)

func newLogs() *cobra.Command {
	var k kube
	var q logQuery
	cmd := &cobra.Command{
		Use:   "logs KIND/NAME",
		Short: "Show what an operator has logged about one object",
		Long: "Shows the lines of the log of an operator that are about one object, of all its replicas and also from before\n" +
			"their last restart, in the order of time. The operator is found by its lease, as why does, or named by\n" +
			"--operator. Its lines must be JSON with the keys of package logs, which operators of trimtab write in a Pod.",
		Example: "  kubectl trimtab logs widget/a -f\n  kubectl trimtab logs widget/a --operator shop-system/shop-operator --since 1h",
		Args:    cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if q.since < 0 {
				return fmt.Errorf("--since: %s is in the future; use a duration such as 1h", q.since)
			}
			t, r, err := k.asked(args)
			if err != nil {
				return err
			}
			if q.pods, err = kubernetes.NewForConfig(t.config); err != nil {
				return err
			}
			q.target, q.object, q.json, q.out = t, r, k.output == "json", cmd.OutOrStdout()
			return q.show(cmd.Context())
		},
	}
	k.bind(cmd, false)
	cmd.Flags().BoolVarP(&q.follow, "follow", "f", false, "go on with what is logged from now on")
	cmd.Flags().DurationVar(&q.since, "since", 0, "only lines of this time, such as 1h; 0 is all")
	cmd.Flags().StringVar(&q.operator, "operator", "", "the operator's Deployment, as NAMESPACE/NAME")
	return cmd
}

// logQuery asks for the lines of a log.
type logQuery struct {
	target
	object   model.Ref
	uid      string
	pods     kubernetes.Interface
	out      io.Writer
	json     bool
	follow   bool
	since    time.Duration
	operator string
}

// said is a line, and where it comes from.
type said struct {
	model.LogLine
	from model.LogSource
}

// lookAgain is after how long new Pods of an operator are looked for.
const lookAgain = 3 * time.Second

func (q *logQuery) show(ctx context.Context) error {
	c := q.cluster()
	q.uid = c.UID(ctx, q.object)
	sources, err := c.OperatorLogs(ctx, q.object, q.operator)
	if err != nil {
		return err
	}
	unseen := c.Unseen()
	positions := map[model.LogSource]*position{}
	all, plain, failed := q.kept(ctx, sources, positions)
	unseen = append(unseen, failed...)
	if len(positions) == 0 {
		return fmt.Errorf("no log of the operator can be read: %s", unseen[len(unseen)-1])
	}
	if plain > 0 && len(all) == 0 {
		unseen = append(unseen, fmt.Sprintf("%d lines that are not JSON; run the operator with --log-format json", plain))
	}
	slices.SortStableFunc(all, func(a, b said) int { return a.At.Compare(b.At) })
	for _, s := range all {
		q.print(s)
	}
	if len(all) == 0 && !q.json {
		fmt.Fprintf(q.out, "the operator has logged nothing about %s\n", q.object)
	}
	if !q.json {
		printUnseen(q.out, unseen)
	}
	if q.follow {
		return q.goOn(ctx, positions)
	}
	return nil
}

// kept reads the logs that there are, and notes the positions up to which it has read those of the present containers. plain is how
// many lines are not JSON, and unseen what could not be read.
func (q *logQuery) kept(ctx context.Context, sources []model.LogSource, positions map[model.LogSource]*position) (all []said, plain int, unseen []string) {
	for _, source := range sources {
		for _, previous := range []bool{true, false} {
			if previous && !source.Restarted {
				continue
			}
			at := &position{}
			others, err := q.read(ctx, source, corev1.PodLogOptions{Previous: previous}, at, func(s said) { all = append(all, s) })
			plain += others
			if err != nil {
				unseen = append(unseen, fmt.Sprintf("the log of container %s of Pod %s/%s: %v", source.Container, source.Namespace, source.Pod, err))
			}
			if err == nil || !at.newest.IsZero() {
				positions[source.Current()] = at
			}
		}
	}
	return all, plain, unseen
}

// read reads a log from a position to its end, and returns how many of its lines are not JSON.
func (q *logQuery) read(ctx context.Context, from model.LogSource, o corev1.PodLogOptions, at *position, each func(said)) (plain int, err error) {
	o.Container, o.Timestamps, o.SinceTime = from.Container, true, at.since()
	if q.since > 0 && o.SinceTime == nil {
		o.SinceSeconds = new(max(1, int64(q.since.Seconds())))
	}
	stream, err := q.pods.CoreV1().Pods(from.Namespace).GetLogs(from.Pod, &o).Stream(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { _ = stream.Close() }()
	lines, isNew := bufio.NewReader(stream), at.reading()
	for {
		text, err := lines.ReadBytes('\n')
		if stamped := split(text); len(stamped.text) > 1 {
			line, about, ok := model.About([]byte(stamped.text), q.object, q.uid)
			at.reach(stamped.at)
			if !ok {
				plain++
			} else if about && isNew(stamped) {
				if line.At.IsZero() {
					line.At = stamped.at
				}
				each(said{line, from})
			}
		}
		if errors.Is(err, io.EOF) {
			return plain, nil
		} else if err != nil {
			return plain, err
		}
	}
}

// goOn prints what is logged from the positions on, and by Pods that start later from their beginning, until the context ends.
func (q *logQuery) goOn(ctx context.Context, positions map[model.LogSource]*position) error {
	lines, ended := make(chan said), make(chan model.LogSource)
	following := map[model.LogSource]bool{}
	again := time.NewTicker(lookAgain)
	defer again.Stop()
	for {
		sources, err := q.cluster().OperatorLogs(ctx, q.object, q.operator)
		if err != nil && ctx.Err() == nil && len(following) == 0 {
			return err
		}
		for _, source := range sources {
			source = source.Current()
			if positions[source] == nil {
				positions[source] = &position{}
			}
			if !following[source] {
				following[source] = true
				go q.followOne(ctx, source, positions[source], lines, ended)
			}
		}
		for looking := true; looking; {
			select {
			case s := <-lines:
				q.print(s)
			case source := <-ended:
				delete(following, source)
			case <-again.C:
				looking = false
			case <-ctx.Done():
				return nil
			}
		}
	}
}

func (q *logQuery) followOne(ctx context.Context, from model.LogSource, at *position, lines chan<- said, ended chan<- model.LogSource) {
	_, _ = q.read(ctx, from, corev1.PodLogOptions{Follow: true}, at, func(s said) { // a log that cannot be read now is tried again
		select {
		case lines <- s:
		case <-ctx.Done():
		}
	})
	select {
	case ended <- from:
	case <-ctx.Done():
	}
}

// print prints a line.
func (q *logQuery) print(s said) {
	if q.json {
		fmt.Fprint(q.out, s.Raw)
		return
	}
	fmt.Fprintf(q.out, "%s  %s  %-5s  %s  %s\n", s.At.Local().Format("2006-01-02 15:04:05.000"), s.from.Pod, s.Level, flat(s.Message), flat(s.Values))
}
