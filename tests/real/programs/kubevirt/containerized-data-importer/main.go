// Prints the definitions of CDI's kinds as YAML documents.
package main

import (
	"fmt"

	"kubevirt.io/containerized-data-importer/pkg/operator/resources"
)

func main() {
	for _, definition := range resources.CDICRDs {
		fmt.Printf("---\n%s\n", definition)
	}
}
