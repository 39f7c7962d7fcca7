package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/crdcheck"
)

func newCRD() *cobra.Command {
	cmd := &cobra.Command{Use: "crd", Short: "Compare CRDs", Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.AddCommand(newCRDDiff())
	return cmd
}

// inCluster is the word for what a cluster has.
const inCluster = "cluster"

func newCRDDiff() *cobra.Command {
	flags := genericclioptions.NewConfigFlags(true)
	cmd := &cobra.Command{
		Use:   "diff OLD NEW",
		Short: "Name what breaks when CRDs are replaced by others",
		Long: "Names each change by which stored objects would be refused or would lose something, or clients would fail, when\n" +
			"the CRDs OLD are replaced by NEW: versions and fields that are removed, other types, fields that are required\n" +
			"without a default, narrower limits. OLD and NEW are files, or folders of files, or the word cluster for the CRDs\n" +
			"that a cluster has. The exit code is 2 if anything breaks.",
		Example: "  trimtab crd diff cluster crds\n  git worktree add ../released v1.2.0 && trimtab crd diff ../released/crds crds",
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			before, after, err := crdsToCompare(cmd.Context(), flags, args[0], args[1])
			if err != nil {
				return err
			}
			return compareCRDs(cmd.OutOrStdout(), before, after, args[0] != inCluster)
		},
	}
	flags.AddFlags(cmd.Flags())
	return cmd
}

type definitions map[string]*apiextensionsv1.CustomResourceDefinition

func crdsToCompare(ctx context.Context, flags *genericclioptions.ConfigFlags, from, to string) (before, after definitions, err error) {
	read := func(where string) (definitions, error) {
		if where == inCluster {
			return crdsOfCluster(ctx, flags)
		}
		return crdsIn(where)
	}
	if before, err = read(from); err != nil {
		return nil, nil, err
	}
	after, err = read(to)
	return before, after, err
}

// compareCRDs prints what breaks. If the old ones are complete, one that is missing among the new ones is removed.
func compareCRDs(out io.Writer, before, after definitions, complete bool) error {
	breaking := false
	for _, name := range slices.Sorted(maps.Keys(before)) {
		err := fmt.Errorf("CRD %s: it is removed, and all its objects with it", name)
		if crd, is := after[name]; is {
			err = crdcheck.Compatible(before[name], crd)
		} else if !complete {
			err = nil
		}
		if err != nil {
			breaking = true
			if _, err := fmt.Fprintln(out, err); err != nil {
				return err
			}
		}
	}
	if breaking {
		return exitError(2)
	}
	_, err := fmt.Fprintln(out, "nothing breaks")
	return err
}

// crdsIn reads the CRDs in a file, or in the files of a folder.
func crdsIn(path string) (definitions, error) {
	all := definitions{}
	err := filepath.WalkDir(path, func(file string, entry fs.DirEntry, err error) error {
		if ext := filepath.Ext(file); err != nil || entry.IsDir() || file != path && ext != ".yaml" && ext != ".yml" {
			return err
		}
		crds, err := readCRDs(file)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		for _, crd := range crds {
			if all[crd.Name] != nil {
				return fmt.Errorf("%s: there is another CRD %s in %s; name the file of one of them", file, crd.Name, path)
			}
			all[crd.Name] = crd
		}
		return nil
	})
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, fmt.Errorf("there is no file or folder %s; for the CRDs of a cluster, write %s", path, inCluster)
	case err == nil && len(all) == 0:
		return nil, fmt.Errorf("no CRD is in %s; name a file or folder with CustomResourceDefinitions", path)
	}
	return all, err
}

// crdsOfCluster reads the CRDs of a cluster.
func crdsOfCluster(ctx context.Context, flags *genericclioptions.ConfigFlags) (definitions, error) {
	config, err := flags.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, err
	}
	var list apiextensionsv1.CustomResourceDefinitionList
	if err := c.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("read the CRDs of the cluster: %w", err)
	}
	all := definitions{}
	for i := range list.Items {
		all[list.Items[i].Name] = &list.Items[i]
	}
	return all, nil
}
