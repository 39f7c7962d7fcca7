// Package engine brings the dependents of one component to what was rendered, or deletes them. It sees
// components without their types.
package engine
