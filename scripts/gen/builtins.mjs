// Writes docs/builtins.md and docs/builtins/*.md: the built-in steps of the catalogue in services/builtins, one page for each folder of
// its sources, with options, inputs and outputs, and what each is equal to.
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { renderTable } from './table.mjs'

/** The folders of the sources, in the order of the index, each with its title and what can be done after reading its page. */
const SUBJECTS = {
  image: ['Pictures', 'decode, resize, cut out and normalise pictures'],
  boxes: ['Boxes', 'turn the outputs of detectors into boxes of the picture, and cut them out'],
  shape: ['Shapes', 'give tensors other dims, join them, cut them, and pick parts of them'],
  elements: ['Elements', 'compute with each element of a tensor'],
  numeric: ['Scores and embeddings', 'turn scores into probabilities and classes, and tokens into embeddings'],
  text: ['Texts', 'turn texts into tokens, and results into texts'],
}

/**
 * @param {string} root - of the checkout.
 * @param {readonly object[]} builtins - the catalogue.
 * @param {(schema: object) => object} toJsonSchema - of zod, for what users write.
 * @throws Error for a built-in whose file is not where its name says.
 */
export function writeBuiltins(root, builtins, toJsonSchema) {
  const folder = join(root, 'docs', 'builtins')
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  const bySubject = Object.groupBy(builtins, (builtin) => subjectOf(root, builtin))
  const pages = Object.entries(SUBJECTS).filter(([subject]) => bySubject[subject] !== undefined)
  for (const [subject, [title, aim]] of pages) {
    const parts = sorted(bySubject[subject]).map((one) => renderBuiltin(one, toJsonSchema(one.options)))
    const head = `# Built-in steps: ${title.toLowerCase()}

After reading this page you can ${aim} in an Ensemble, without a model of your own. \`npm run gen\` writes the page. [Built-in steps](../builtins.md) has
what they have in common.
`
    writeFileSync(join(folder, `${subject}.md`), [head, ...parts].join('\n'))
  }
  // A list, and no table, whose every line a longer name would change.
  const lists = pages.map(([subject, [title]]) => {
    const lines = sorted(bySubject[subject]).map(({ name, summary }) => {
      return `- [${name}](builtins/${subject}.md#${name.toLowerCase()}): ${summary}`
    })
    return `## ${title}\n\n${lines.join('\n')}\n`
  })
  writeFileSync(join(root, 'docs', 'builtins.md'), renderIndex(lists))
}

const sorted = (builtins) => builtins.toSorted((a, b) => (a.name < b.name ? -1 : 1))

/** `topK` is in `SUBJECT/top-k.ts`. */
function subjectOf(root, { name }) {
  const file = `${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}.ts`
  const found = Object.keys(SUBJECTS).filter((subject) =>
    existsSync(join(root, 'services', 'builtins', 'src', subject, file)),
  )
  if (found.length === 1) return found[0]
  throw new Error(`built-in ${name}: got ${found.length} files named ${file}, want one`)
}

function renderIndex(lists) {
  return `# Built-in steps

After reading this page you know which steps an [Ensemble](ensembles.md) can have without a model of your own, and what holds for all of them.
\`npm run gen\` writes the page.

A step names a built-in where it would name a model. Options stand beside the name; the tensors that feed it stand in \`inputMap\`, and later
steps read its outputs as those of a model:

\`\`\`yaml
inputs: [{ name: image, datatype: BYTES, shape: [1] }]
steps:
  - { name: decode, builtin: { name: imageDecode }, inputMap: { data: image } }
  - name: resize
    builtin: { name: resize, width: 224, height: 224 }
    inputMap: { image: decode.image }
  - name: scaled
    builtin: { name: normalise, mean: [123.7, 116.3, 103.5], std: [58.4, 57.1, 57.4], layout: CHW }
    inputMap: { image: resize.image }
outputs: [{ name: pixels, from: scaled.image }]
\`\`\`

- **Where they run.** In one process beside the models. As processes, in those that have \`tutti step --builtins\`. On Kubernetes in pods of their own, which a namespace has as long as one
  of its Ensembles needs them; \`builtins\` of the [Router](routers.md#pods-of-built-in-steps) sets their number and resources.
- **Files.** A step whose options name a file also names the Model in whose directory it is: \`builtin: { name: tokenize, model: encoder }\`. It runs in the replicas of that Model, which
  have the file beside its version or one folder above. It must be a regular file there of at most 64 MiB, or a link to one. All requests of one client request read the files of one revision.
- **A lost replica costs no request.** A built-in keeps nothing, so one whose process or pod is gone runs again at another one, twice at most.
- **All rules of steps hold**: \`when\`, \`forEach\`, \`loop\`, \`timeout\`, \`retry\`, \`onError\`. \`hedge\` and \`parameters\` are refused: a built-in reads no parameters, and one that is slow is slow everywhere.
- **In an Ensemble with \`maxBatchSize\`**, a built-in gets whole batches, whose rows are the first dimension, and gives them back so.
- **Checked when applied.** Datatypes and dims of the outputs follow from the tensors that feed the step and from its options. What does not fit is refused with the name of the option or
  the input, what came and what is wanted.
- **No batches.** A built-in gets one request at a time. Those for pictures take the last three dimensions as height, width and channels, and keep the dimensions before, so
  one step serves a picture and a stack of pictures.
- **No tensor without dims.** A single number is [1].
- **NumPy, OpenCV, PIL.** Each built-in says which function it equals, with which tolerance, and where it differs. Tests compare them on random inputs.
- **Checked again in each request**, where all extents are known. The outputs of one request have at most 1 GiB, texts included; they are counted before they are made. Where texts
  are only moved, those of the inputs count.
- **A request that nobody waits for ends**, also while it computes. Built-ins for picture files, crops, boxes of maps, rotated boxes and texts end a request after
  30 s. They refuse one that needs more memory than their thread may have (\`MESSAGE_TOO_LARGE\`).
- **FP16** is computed as FP32, and rounded in the end. BF16 is only cast.

[Instead of Python](builtins/step-kinds.md) has chains of them for steps that public ensembles write in Python.

${lists.join('\n')}`
}

function renderBuiltin({ name, summary, inputs, outputs, arithmetic }, schema) {
  const lines = [`## ${name}`, '', summary, '']
  lines.push(...ports('in', inputs), ...ports('out', outputs), '')
  const options = Object.entries(schema.properties ?? {})
  if (options.length > 0) {
    const required = new Set(schema.required ?? [])
    const rows = options.map(([key, field]) => renderOption(key, field, required.has(key)))
    lines.push(renderTable([['option', 'values', 'default', 'meaning'], ...rows]), '')
  }
  for (const { case: which, equals, tolerance, except } of arithmetic) {
    const difference = except === undefined ? '' : ` Not for ${except}.`
    lines.push(`- Equals (${which}): ${equals}. Tolerance: ${tolerance}.${difference}`)
  }
  return `${lines.join('\n')}\n`
}

function ports(way, named) {
  return Object.entries(named).map(([name, text]) => {
    const names = name.split(', ').map((one) => (one === '…' ? one : `\`${one}\``))
    return `- ${way} ${names.join(', ')}: ${text}`
  })
}

function renderOption(key, field, isRequired) {
  const fallback = field.default === undefined ? (isRequired ? 'required' : '') : code(field.default)
  return [`\`${key}\``, valuesOf(field), fallback, field.description.replaceAll('|', '\\|')]
}

const code = (value) => `\`${typeof value === 'string' ? value : JSON.stringify(value)}\``

/** The values of an option in few words. */
function valuesOf(field) {
  if (field.enum !== undefined) return field.enum.map(code).join(', ')
  if (field.anyOf !== undefined) return field.anyOf.map(valuesOf).join(', or ')
  if (field.type === 'boolean') return 'true or false'
  if (field.type === 'string') return `text, up to ${field.maxLength} characters`
  if (field.type === 'array') return `list of ${sizeOf(field)}: ${valuesOf(field.items)}`
  if (field.type === 'object') return 'object'
  const noun = field.type === 'integer' ? 'whole number' : 'number'
  return `${noun}${rangeOf(field)}`
}

function sizeOf({ minItems = 0, maxItems }) {
  return minItems === maxItems ? `${minItems}` : `${minItems} to ${maxItems}`
}

/** Bounds that zod adds to every whole number say nothing. */
function rangeOf(field) {
  const bounds = [field.minimum, field.maximum].map((bound) =>
    Math.abs(bound ?? Number.MAX_SAFE_INTEGER) === Number.MAX_SAFE_INTEGER ? undefined : bound,
  )
  const [least, most] = bounds
  if (least === undefined && most === undefined) return ''
  if (most === undefined) return `, at least ${least}`
  return least === undefined ? `, at most ${most}` : `, ${least} to ${most}`
}
