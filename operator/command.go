package operator

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/trimtab-dev/trimtab/api"
)

const managerCommand = "manager"

// withDefaultCommand makes "manager" the command of arguments that name none.
func withDefaultCommand(args []string) []string {
	if len(args) == 0 {
		return []string{managerCommand}
	}
	if first := args[0]; strings.HasPrefix(first, "-") && !slices.Contains([]string{"-h", "--help"}, first) {
		return append([]string{managerCommand}, args...)
	}
	return args
}

func command(o Options, useLog func(logr.Logger)) *cobra.Command {
	root := &cobra.Command{
		Use:           o.Name,
		Short:         "Runs the operator, and prints the manifests that install it",
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fmt.Errorf("%w; see %s --help", discreet(err), cmd.CommandPath())
	})
	root.AddCommand(managerCmd(o, useLog), manifestsCmd(o), versionCmd(o))
	return root
}

// settings are the flags that every operator has.
type settings struct {
	kubeconfig      string
	namespace       string
	leaderElect     bool
	metricsAddress  string
	healthAddress   string
	debugAddress    string
	shutdownTimeout time.Duration
	stuckAfter      time.Duration
	watchNamespaces []string
	installation    string
	adoptionLimit   []string
	accessLimit     []string
	trace           string
	logFormat       string
	logLevel        string
}

// flags binds s, and the operator's own flags, to f.
func (s *settings) flags(f *pflag.FlagSet, o Options) {
	f.StringVar(&s.kubeconfig, "kubeconfig", "", "file that says which cluster; empty means $KUBECONFIG, the pod's own cluster, or ~/.kube/config")
	f.StringVar(&s.namespace, "namespace", "", "where the operator's lease lives; empty means the pod's or the kubeconfig's namespace")
	f.StringSliceVar(&s.watchNamespaces, "watch-namespaces", nil, "namespaces whose objects are worked on, with commas between; empty means all")
	f.StringVar(&s.installation, "installation", "", "tells operators of the same kinds in one cluster apart: objects that another one works on are left alone; empty means "+o.Name+"; after a change the objects of before are left alone")
	f.StringSliceVar(&s.adoptionLimit, "adoption-limit", nil, "the most that annotation "+api.AnnotationAdoption+" may ask for: never, if-marked, if-identical or always, in some namespaces as NAMESPACE=LIMIT, with commas between; empty leaves it at if-marked, or what the operator's author chose")
	f.StringSliceVar(&s.accessLimit, "access-limit", nil, "the most that annotation "+api.AnnotationAccess+" may allow: letters of CUD or none, in some namespaces as NAMESPACE=LIMIT, with commas between; empty means what the operator's author chose")
	f.BoolVar(&s.leaderElect, "leader-elect", true, "work only while holding the lease, so that replicas stand by for one another")
	f.StringVar(&s.metricsAddress, "metrics-address", ":8080", "serve /metrics here; 0 switches it off")
	f.StringVar(&s.healthAddress, "health-address", ":8081", "serve /livez and /readyz here; 0 switches them off")
	f.StringVar(&s.debugAddress, "debug-address", "127.0.0.1:8082", "serve /debug/trace and /debug/pprof here, on loopback only; 0 switches them off")
	f.DurationVar(&s.shutdownTimeout, "shutdown-timeout", 30*time.Second, "how long passes under way may take to finish on stop")
	f.DurationVar(&s.stuckAfter, "stuck-after", 10*time.Minute, "how long one pass may take before /livez fails and the pod is restarted")
	f.StringVar(&s.trace, "trace", "", "append what every pass does to this file as JSON lines; - means standard output")
	f.StringVar(&s.logFormat, "log-format", "auto", "text, json, or auto: text on a terminal")
	f.StringVar(&s.logLevel, "log-level", "info", "debug, info, warn or error")
	if o.Flags != nil {
		o.Flags(f)
	}
}

// parse reads flags of the manager, the operator's own among them.
func (s *settings) parse(o Options, args []string) (*pflag.FlagSet, error) {
	f := pflag.NewFlagSet(o.Name, pflag.ContinueOnError)
	s.flags(f, o)
	if err := f.Parse(args); err != nil {
		return nil, fmt.Errorf("flags of the manager: %w", discreet(err))
	}
	if f.NArg() > 0 {
		return nil, fmt.Errorf("flags of the manager: %q is not a flag", f.Arg(0))
	}
	return f, nil
}

func managerCmd(o Options, useLog func(logr.Logger)) *cobra.Command {
	var s settings
	cmd := &cobra.Command{
		Use:   managerCommand,
		Short: "Run the controllers (what happens without a command, too)",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			log, err := newLogger(cmd.ErrOrStderr(), s.logFormat, s.logLevel)
			if err != nil {
				return err
			}
			useLog(log)
			if err := runManager(cmd.Context(), o, s, log, cmd.OutOrStdout()); err != nil {
				log.Error(nil, err.Error())
				return errReported
			}
			return nil
		},
	}
	s.flags(cmd.Flags(), o)
	return cmd
}

func manifestsCmd(o Options) *cobra.Command {
	var m ManifestOptions
	cmd := &cobra.Command{
		Use:   "manifests [crds|rbac|all] [-- MANAGER-FLAG...]",
		Short: "Print what installs the operator, for kubectl apply --server-side -f -",
		Long: "Print what installs the operator, for kubectl apply --server-side -f -\n\n" +
			"Everything is derived from the controllers; no cluster is needed. What follows -- are\n" +
			"flags that the operator runs with.",
		RunE: func(cmd *cobra.Command, args []string) error {
			wanted := partAll
			if n := cmd.ArgsLenAtDash(); n >= 0 {
				args, m.Args = args[:n], args[n:]
			}
			switch len(args) {
			case 0:
			case 1:
				wanted = part(args[0])
			default:
				return fmt.Errorf("too many arguments %q; see %s --help", args[1:], cmd.CommandPath())
			}
			objects, err := manifests(o, m, wanted, func(warning string) {
				_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "%s: warning: %s\n", o.Name, warning) // nobody to tell
			})
			if err != nil {
				return err
			}
			return printYAML(cmd.OutOrStdout(), objects)
		},
	}
	cmd.Flags().StringVar(&m.Namespace, "namespace", "", "where the operator runs; empty means "+o.Name+"; after a change the objects of before are left alone")
	cmd.Flags().StringToStringVar(&m.FromSecret, "from-secret", nil, "value of a flag from a Secret, as FLAG=SECRET/KEY; for flags that name a secret or a file")
	cmd.Flags().StringVar(&m.Image, "image", "", "the operator's image; empty means "+o.Name+":latest")
	return cmd
}

func versionCmd(o Options) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s %s %s\n", o.Name, version(), runtime.Version())
			return err
		},
	}
}

// version is what the build recorded: the module's version, or the commit.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(unknown version)"
	}
	return info.Main.Version
}
