// Package templates makes components from a folder of Go templates: [NewGenerator] returns a [component.Generator] that
// executes them, and [NewRenderer] makes a renderer of it for a kind with a typed spec.
//
// The folder has YAML files, which are templates of text/template, and what they need:
//
//   - The objects are in files whose names end in .yaml or .yml, in the folder and the folders in it, any number in a file.
//   - Files whose names begin with _ or a point have no objects. Use _helpers.tpl or the like for definitions. A template
//     can be included by its name: that of a definition, or the path of a file from the folder.
//   - With [Options].Suffix, only files with that suffix are templates. All others are as they are.
//
// # Data
//
// The data of the templates, {{ . }}, is what a function returns for a component. Return a struct: then a field that does
// not exist is an error, and so is a text where a number belongs. With [Generator.Generate], it is the map of the
// parameters, in which integers stay integers.
//
// A value that is missing, in a map or in a pointer, is an error if it is printed, where Helm prints nothing. Use the
// functions default or required. Some functions of sprig, such as quote, print nothing for it. The texts <no value> and
// <nil>, which text/template prints then, cannot be in an output.
//
// # Functions
//
// Those of text/template, those of sprig that return the same each time, and:
//
//	include NAME DATA             the output of a template, such as include "labels" . | nindent 4
//	tpl TEXT DATA                 the output of a text that is a template
//	required MESSAGE VALUE        the value, or an error if it is empty
//	toYaml, fromYaml, fromYamlArray, fromJsonArray
//	namespace, name               those of the component, or what its placement says
//	component                     the component itself: {{ component.GetUID }}
//	componentRevision             status.revision: 1 until the component was ready, then more with each change
//	componentDigest               status.revisionDigest
//	lookup VERSION KIND NAMESPACE NAME         an object, or an empty map. Without a name: a list
//	mustLookup VERSION KIND NAMESPACE NAME     an object, or an error
//	lookupList VERSION KIND NAMESPACE [SELECTOR]    the objects of a kind, all or those with some labels
//	kubernetesVersion             {{ kubernetesVersion.GitVersion }}, .Major, .Minor
//	apiVersions                   what is served: {{ if has "apps/v1/Deployment" apiVersions }}
//	readFile PATH                 a file of the folder, by its path in it
//	existsFile PATH, listFiles PATTERN     such as listFiles "parts/**.yaml"
//
// What is looked up is watched, with one watch of metadata for each object; see [component.Lookup]. Without a component,
// nothing exists, the revision is 1, and the version and the APIs of the cluster are unknown, which is an error.
//
// Functions that return something else each time, such as randAlphaNum, genCA and now, are not there, nor are env and
// others that read from the machine. Generate a password in Go and keep it in a Secret, or use generator/helm, which keeps
// such results.
//
// # Safety
//
// Templates are part of the operator, and are trusted as its code is. Values are not: a value with a line break can add
// fields to a manifest. Print values that come from users with quote, toJson or toYaml.
package templates
