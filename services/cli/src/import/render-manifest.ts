import { Document, isMap, isSeq, visit } from 'yaml'

/** A manifest as YAML that every reader takes alike: what YAML 1.1 would read as a boolean (`y`) or a merge (`<<`) is quoted. */
export function renderManifest(manifest: object): string {
  const document = new Document(manifest, {
    version: '1.1',
    aliasDuplicateObjects: false,
    // With it a key `<<` would be written as a merge.
    customTags: (tags) =>
      tags.filter((tag) => typeof tag === 'string' || tag.tag !== 'tag:yaml.org,2002:merge'),
  })
  visit(document, {
    Scalar: (_, node) => {
      if (node.value === '<<') node.type = 'QUOTE_DOUBLE'
    },
    // A tensor in a line, a shape in a line.
    Collection: (_, node) => {
      const isShort = JSON.stringify(node.toJSON()).length <= 60
      const isFlat = node.items.every((item) => !isMap(item) && !isSeq(item))
      if (isSeq(node) && isFlat && isShort) node.flow = true
    },
  })
  return document.toString({ lineWidth: 0, directives: false })
}
