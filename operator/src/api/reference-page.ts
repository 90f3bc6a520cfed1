import { buildCrd, GROUP, KINDS, type KindDefinition, VERSION } from './crds.ts'
import { type StructuralSchema, toStructuralSchema } from './structural-schema.ts'

interface Row {
  readonly path: string
  readonly type: string
  readonly isRequired: boolean
  readonly description: string
}

/** Writes the reference page of all kinds and fields in Markdown, from the same schemas as the CRDs. */
export function renderReference(): string {
  const sections = KINDS.map(renderKind)
  return `# Custom resources

After reading this page you can look up every field and rule of a Model, an Ensemble and a Router. [manifests.md](manifests.md)
explains how to write and check them. \`npm run gen\` writes this page from the schemas in \`services/api/src\`.

The group is \`${GROUP}\`, the version \`${VERSION}\`. All kinds are in the category \`tutti\`. \`kubectl\` and \`tutti
validate\` refuse fields that are not here. A client that does not ask the API server for that (\`kubectl --validate=warn\`, Helm, most
libraries) gets a warning, and the field is dropped. A \`null\` is as if the field were absent.

The API server cannot check rules about fields that take numbers and text (\`resources\`, \`tolerance\`), nor those about \`podTemplate.spec\`. The condition
\`Accepted\` and \`tutti validate\` name their breach.

${sections.join('\n')}`
}

function renderKind(definition: KindDefinition): string {
  const { kind, plural, shortName, spec, status } = definition
  const rules = findRules(buildCrd(definition), [])
  return `## ${kind}

${String(definition.manifest.description)} \`kubectl get ${plural}.${GROUP}\`, or \`${shortName}\` for short.

### ${kind}: spec

${renderTable(rowsOf(toStructuralSchema(spec), ''))}
### ${kind}: rules

${rules.map((rule) => `- ${rule}`).join('\n')}

### ${kind}: status

${renderTable(rowsOf(toStructuralSchema(status), ''))}`
}

function renderTable(rows: readonly Row[]): string {
  const header = ['field', 'type', 'meaning']
  const cells = rows.map(({ path, type, isRequired, description }) => [
    `\`${path}\``,
    isRequired ? `${type}, required` : type,
    description,
  ])
  const widths = header.map((name, i) =>
    Math.max(...[header, ...cells].map((row) => (row[i] ?? name).length)),
  )
  const line = (row: readonly string[]): string =>
    `| ${row.map((cell, i) => cell.padEnd(widths[i] ?? 0)).join(' | ')} |`
  const rule = `| ${widths.map((width) => '-'.repeat(width)).join(' | ')} |`
  return `${[line(header), rule, ...cells.map(line)].join('\n')}\n`
}

function rowsOf(schema: StructuralSchema, prefix: string): Row[] {
  const required = new Set(Array.isArray(schema['required']) ? schema['required'] : [])
  return Object.entries(Object(schema['properties'])).flatMap(([name, child]): Row[] => {
    const node: StructuralSchema = Object(child)
    const path = `${prefix}${name}`
    const { suffix, element } = elementOf(node)
    return [
      {
        path: path + suffix,
        type: describeType(node),
        isRequired: required.has(name),
        description: cellText(node['description']),
      },
      ...rowsOf(element, `${path}${suffix}.`),
    ]
  })
}

function elementOf(node: StructuralSchema): {
  readonly suffix: string
  readonly element: StructuralSchema
} {
  if (node['items'] !== undefined) return { suffix: '[]', element: Object(node['items']) }
  const values = node['additionalProperties']
  return values === undefined
    ? { suffix: '', element: node }
    : { suffix: '{}', element: Object(values) }
}

function cellText(description: unknown): string {
  return typeof description === 'string' ? description.replaceAll('|', '\\|') : ''
}

function describeType(node: StructuralSchema): string {
  const bound = (key: string): string => `at most ${Number(node[key])}`
  if (node['x-kubernetes-int-or-string'] === true) return 'int or string'
  const { type } = node
  if (typeof type !== 'string') return 'number or string'
  if (Array.isArray(node['enum'])) return node['enum'].join(', ')
  switch (type) {
    case 'integer':
      return `int, ${Number(node['minimum'])} to ${Number(node['maximum'])}`
    case 'array':
      return `list, ${bound('maxItems')}`
    case 'string':
      return `string, ${bound('maxLength')}`
    default:
      return node['maxProperties'] === undefined ? type : `map, ${bound('maxProperties')}`
  }
}

/** Finds the messages of all rules, each with the path that it is about. */
function findRules(node: unknown, path: readonly string[]): string[] {
  if (typeof node !== 'object' || node === null) return []
  const { 'x-kubernetes-validations': validations, ...rest } = Object(node)
  const where = path.filter((name) => !SCHEMA_WORDS.has(name) && !/^[0-9]+$/.test(name)).join('.')
  const own = Array.isArray(validations)
    ? validations.map(({ message, fieldPath }) =>
        `\`${where}${fieldPath ?? ''}\`: ${message}`.replace('`.', '`'),
      )
    : []
  return [
    ...own,
    ...Object.entries(rest).flatMap(([name, child]) => findRules(child, [...path, name])),
  ]
}

const SCHEMA_WORDS = new Set([
  'spec',
  'versions',
  'schema',
  'openAPIV3Schema',
  'properties',
  'items',
  'additionalProperties',
])
