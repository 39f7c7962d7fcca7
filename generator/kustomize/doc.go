// Package kustomize makes components from kustomizations: [NewGenerator] returns a [component.Generator] that builds a
// kustomization with kustomize's own library, and [NewRenderer] makes a renderer of it for a kind with a typed spec.
//
// What a component changes is an overlay: a kustomization over that of the generator, as an overlay in a file is one over
// its base. The function that is given to NewRenderer sets its fields, such as images, replicas and patches, from the
// component. The parameters of [Generator.Generate] are the overlay itself, with the fields of a kustomization.yaml.
//
//   - An overlay names folders in resources and components by their paths in the file system of the generator. So a
//     component can switch on a part of the kustomization. Everything else is in the overlay itself, which names no files.
//   - Objects that name no namespace go to that of the component; see [component.PlacementConfiguration]. Names are those
//     of the files. [Options] has fields for kinds with several components in a namespace.
//   - Generated ConfigMaps and Secrets, whose names end with a hash of their content, are dependents like others. Another
//     content makes another object, and the one before is deleted, because it is no longer rendered.
//   - Nothing is fetched, executed or read from the disk: all is copied from the file system at first. Remote resources,
//     Helm charts, plugins that are not built into kustomize, functions, and what is outside of the file system are errors
//     of NewGenerator. So is the field openapi, which kustomize keeps for the whole process, not for a kustomization.
//   - The kustomization must be complete without an overlay. NewGenerator builds it once to find out.
//
// Who may write an overlay decides about the objects: an overlay can patch everything. So give a spec the fields that its
// users need, and set the overlay from these.
//
// Kustomize prints a warning about a deprecated field, such as vars, to the standard error each time.
//
// See the examples of NewRenderer and [Generator.Render].
package kustomize
