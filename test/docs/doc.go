// Package docs runs the commands of documents as a reader would. Only tests are here.
package docs
