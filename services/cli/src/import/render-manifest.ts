import { Document, isMap, isSeq, visit } from 'yaml'

/** Renders a manifest as YAML that every reader takes alike: a text that YAML 1.1 would read as a boolean (`y`) is quoted. */
export function renderManifest(manifest: object): string {
  const document = new Document(manifest, {
    version: '1.1',
    aliasDuplicateObjects: false,
  })
  visit(document, {
    // A tensor in a line, a shape in a line.
    Collection: (_, node) => {
      const isShort = JSON.stringify(node.toJSON()).length <= 60
      const isFlat = node.items.every((item) => !isMap(item) && !isSeq(item))
      if (isSeq(node) && isFlat && isShort) node.flow = true
    },
  })
  return document.toString({ lineWidth: 0, directives: false })
}
