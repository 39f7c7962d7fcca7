package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/trimtab-dev/trimtab/cmd/trimtab/internal/image"
	"github.com/trimtab-dev/trimtab/cmd/trimtab/internal/steps"
)

// packaging is one run of trimtab package.
type packaging struct {
	source, out, image, roots string
	platforms                 []string
	operator                  []string // flags of the operator's own command
}

func newPackage() *cobra.Command {
	var p packaging
	var namespace, version string
	var secrets []string
	cmd := &cobra.Command{
		Use:   "package [DIR] --image NAME:TAG [-- MANAGER-FLAG...]",
		Short: "Make an operator's image, Helm chart, and manifests for kubectl, kustomize and OLM",
		Long: "Builds the operator in DIR, a folder with a main package of trimtab, and writes everything that installs it: the\n" +
			"image as an OCI archive, for which no Docker is needed, a Helm chart, install.yaml for kubectl, a base for\n" +
			"kustomize, a bundle for the Operator Lifecycle Manager, dashboard and alerts. The manifests come from the\n" +
			"operator itself. Arguments after -- are flags that it is run with. The same sources make the same image.",
		Example: "  trimtab package --image ghcr.io/your-name/widgets:v0.1.0\n" +
			"  skopeo copy --all oci-archive:dist/widgets.oci.tar docker://ghcr.io/your-name/widgets:v0.1.0\n" +
			"  helm install widgets dist/chart/widgets --namespace widgets --create-namespace",
		RunE: func(cmd *cobra.Command, args []string) error {
			if n := cmd.ArgsLenAtDash(); n >= 0 {
				args, p.operator = args[:n], slices.Concat([]string{"--"}, args[n:])
			}
			if len(args) > 1 {
				return fmt.Errorf("%d folders are named; name the one of the operator", len(args))
			}
			p.source = cmp.Or(strings.Join(args, ""), ".")
			for _, s := range secrets {
				p.operator = slices.Insert(p.operator, 0, "--from-secret="+s)
			}
			for flag, value := range map[string]string{"namespace": namespace, "version": version} {
				if value != "" {
					p.operator = slices.Insert(p.operator, 0, "--"+flag+"="+value)
				}
			}
			return p.run(cmd)
		},
	}
	f := cmd.Flags()
	f.StringVar(&p.out, "out", "dist", "folder to write to")
	f.StringVar(&p.image, "image", "", "name of the image, with registry and tag")
	f.StringSliceVar(&p.platforms, "platform", []string{"linux/amd64", "linux/arm64"}, "platforms of the image")
	f.StringVar(&p.roots, "ca-bundle", "", "file with the certificates of authorities that the operator trusts (default: that of this machine)")
	f.StringVar(&namespace, "namespace", "", "namespace in install.yaml and for kustomize (default: the name of the operator)")
	f.StringVar(&version, "version", "", "version of the chart and of the bundle (default: the tag of the image)")
	f.StringSliceVar(&secrets, "from-secret", nil, "take the value of a flag of the operator from a Secret: FLAG=SECRET/KEY")
	return cmd
}

func (p *packaging) run(cmd *cobra.Command) error {
	if p.image == "" || strings.Contains(p.image, "@") {
		return errors.New("name the image that will be pushed, with its tag, as in --image ghcr.io/your-name/widgets:v0.1.0")
	}
	var platforms []image.Platform
	for _, text := range p.platforms {
		platform, err := image.Parse(text)
		if err != nil {
			return err
		}
		platforms = append(platforms, platform)
	}
	roots, err := image.Roots(p.roots)
	if err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "trimtab-package-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	progress := steps.New(cmd.ErrOrStderr())
	i := image.Image{Name: p.image, Binaries: map[image.Platform]string{}, Roots: roots}
	host := image.Platform{OS: runtime.GOOS, Architecture: runtime.GOARCH}
	for _, platform := range slices.Compact(append(platforms, host)) {
		file := filepath.Join(folder, platform.OS+"-"+platform.Architecture)
		if i.Binaries[platform] != "" {
			continue
		}
		err := progress.Run("build for "+platform.String(), func(*steps.Step) error { return p.build(cmd.Context(), platform, file) })
		if err != nil {
			return err
		}
		i.Binaries[platform] = file
	}
	self := i.Binaries[host]
	for platform := range i.Binaries {
		if !slices.Contains(platforms, platform) {
			delete(i.Binaries, platform)
		}
	}
	if err := p.manifests(cmd, self); err != nil {
		return err
	}
	return p.archive(cmd.OutOrStdout(), i)
}

// build builds the operator, statically linked and without paths of this machine.
func (p *packaging) build(ctx context.Context, platform image.Platform, file string) error {
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", file, ".")
	build.Dir = p.source
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+platform.OS, "GOARCH="+platform.Architecture)
	out, err := build.CombinedOutput()
	if err != nil {
		return fmt.Errorf("go build in %s: %w\n%s", p.source, err, out)
	}
	return nil
}

// manifests has the operator write what installs it.
func (p *packaging) manifests(cmd *cobra.Command, self string) error {
	args := slices.Concat([]string{"package", p.out, "--image", p.image}, p.operator)
	run := exec.CommandContext(cmd.Context(), self, args...)
	run.Stdout, run.Stderr = cmd.OutOrStdout(), cmd.ErrOrStderr()
	if err := run.Run(); err != nil {
		return fmt.Errorf("the program in %s could not write its manifests; it has to call operator.Main of trimtab: %w", p.source, err)
	}
	return nil
}

// archive writes the image.
func (p *packaging) archive(out io.Writer, i image.Image) error {
	name := p.image[strings.LastIndex(p.image, "/")+1:]
	i.Program, _, _ = strings.Cut(name, ":")
	file := filepath.Join(p.out, i.Program+".oci.tar")
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	digest, err := image.Write(f, i)
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write the image: %w", err)
	}
	_, err = fmt.Fprintf(out, push, file, digest, file, p.image, filepath.Join(p.out, "image"))
	return err
}

// push says how the image gets to a registry.
const push = `%s

The digest of the image is %s. Push it with one of these:
  skopeo copy --all oci-archive:%s docker://%s
  mkdir -p %[5]s && tar -xf %[3]s -C %[5]s && crane push %[5]s %[4]s
`
