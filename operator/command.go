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

// withDefaultCommand adds the command "manager" to arguments without a command.
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
		Short:         "Run the operator, print the manifests that install it, or plan its next pass over an object",
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fmt.Errorf("%w; see %s --help", redacted(err), cmd.CommandPath())
	})
	root.AddCommand(managerCmd(o, useLog), manifestsCmd(o), planCmd(o), packageCmd(o), uninstallCmd(o), dashboardCmd(o), alertsCmd(o), versionCmd(o))
	return root
}

// settings holds the flags that all operators have.
type settings struct {
	kubeconfig      string
	namespace       string
	leaderElect     bool
	metricsAddress  string
	healthAddress   string
	debugAddress    string
	webhookAddress  string
	webhookURL      string
	webhookCertDir  string
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

// flags defines the flags of s and the operator's own flags in f.
func (s *settings) flags(f *pflag.FlagSet, o Options) {
	f.StringVar(&s.kubeconfig, "kubeconfig", "", "path of a kubeconfig (default: $KUBECONFIG, the pod's own cluster, or ~/.kube/config)")
	f.StringVar(&s.namespace, "namespace", "", "namespace of the operator's lease (default: the namespace of the pod or of the kubeconfig)")
	f.StringSliceVar(&s.watchNamespaces, "watch-namespaces", nil, "comma-separated namespaces whose objects are reconciled (default: all)")
	f.StringVar(&s.installation, "installation", "", "name that distinguishes operators of the same kinds in one cluster; objects of other installations are ignored, and so are, after a change of the name, objects of the previous one (default: "+o.Name+")")
	f.StringSliceVar(&s.adoptionLimit, "adoption-limit", nil, "comma-separated limits for annotation "+api.AnnotationAdoption+": never, if-marked, if-identical or always, or NAMESPACE=LIMIT for one namespace (default: if-marked, unless the operator's author chose another)")
	f.StringSliceVar(&s.accessLimit, "access-limit", nil, "comma-separated limits for annotation "+api.AnnotationAccess+": letters from CUD, or none, or NAMESPACE=LIMIT for one namespace (default: chosen by the operator's author)")
	f.BoolVar(&s.leaderElect, "leader-elect", true, "reconcile only while holding the lease, so that other replicas stand by")
	f.StringVar(&s.metricsAddress, "metrics-address", ":8080", "address of /metrics; 0 turns it off")
	f.StringVar(&s.healthAddress, "health-address", ":8081", "address of /livez and /readyz; 0 turns them off")
	f.StringVar(&s.debugAddress, "debug-address", "127.0.0.1:8082", "address of /debug/operator, metrics, trace and pprof, on loopback only; 0 turns them off")
	f.StringVar(&s.webhookAddress, "webhook-address", ":9443", "address of webhooks, if the operator has any")
	f.StringVar(&s.webhookURL, "webhook-url", "", "URL at which the API server reaches --webhook-address (default: the operator's Service, or https://127.0.0.1 outside a cluster whose API server is on this machine)")
	f.StringVar(&s.webhookCertDir, "webhook-cert-dir", "", "directory with tls.crt and tls.key for webhooks, as cert-manager issues them; the operator then leaves the caBundle alone (default: the operator makes certificates)")
	f.DurationVar(&s.shutdownTimeout, "shutdown-timeout", 30*time.Second, "how long running passes may take to finish when the operator stops")
	f.DurationVar(&s.stuckAfter, "stuck-after", 10*time.Minute, "how long a pass may take before /livez fails, so that the pod is restarted")
	f.StringVar(&s.trace, "trace", "", "file to which the events of every pass are appended as JSON lines; - means standard output")
	f.StringVar(&s.logFormat, "log-format", "auto", "text, json or auto (text on a terminal, json elsewhere)")
	f.StringVar(&s.logLevel, "log-level", "info", "debug, info, warn or error")
	if o.Flags != nil {
		o.Flags(f)
	}
}

// parse parses the flags of the manager, including the operator's own.
func (s *settings) parse(o Options, args []string) (*pflag.FlagSet, error) {
	f := pflag.NewFlagSet(o.Name, pflag.ContinueOnError)
	s.flags(f, o)
	if err := f.Parse(args); err != nil {
		return nil, fmt.Errorf("flags of the manager: %w", redacted(err))
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
		Short: "Run the controllers (the default command)",
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
		Short: "Print the manifests that install the operator",
		Long: "Print the manifests that install the operator, for kubectl apply --server-side -f -.\n" +
			"They are derived from the controllers; no cluster is needed. Arguments after -- are flags\n" +
			"that the operator is run with.",
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
				_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "%s: warning: %s\n", o.Name, warning) // there is nowhere to report it
			})
			if err != nil {
				return err
			}
			return printYAML(cmd.OutOrStdout(), objects)
		},
	}
	m.flags(cmd, o.Name)
	return cmd
}

// flags defines the flags of m that an operator has.
func (m *ManifestOptions) flags(cmd *cobra.Command, operator string) {
	f := cmd.Flags()
	f.StringVar(&m.Namespace, "namespace", "", "namespace in which the operator runs; after a change, objects of the previous one are ignored (default: "+operator+")")
	f.StringToStringVar(&m.FromSecret, "from-secret", nil, "take the value of a flag from a Secret: FLAG=SECRET/KEY, for flags that name a secret or a file")
	f.StringVar(&m.Image, "image", "", "image of the operator (default: "+operator+":latest)")
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

// version returns what the build recorded: the module's version, or the commit.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(unknown version)"
	}
	return info.Main.Version
}
