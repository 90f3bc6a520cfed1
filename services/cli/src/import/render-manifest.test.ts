import * as fc from 'fast-check'
import t from 'tap'
import { readYaml } from '../manifests/yaml-documents.ts'
import { renderManifest } from './render-manifest.ts'

const manifest = {
  apiVersion: 'tutti.dev/v1alpha1',
  kind: 'Model',
  metadata: { name: 'a' },
}

/** Writes a spec and reads it again. @returns what comes of it, if it is another one. */
function problemOf(spec: unknown): string | undefined {
  const wanted = { ...manifest, spec }
  const { documents, problems } = readYaml(renderManifest(wanted))
  const read = JSON.stringify(documents.map(({ value }) => value))
  return read === JSON.stringify([wanted]) ? undefined : `${read} ${JSON.stringify(problems)}`
}

await t.test('what is written is read again, whatever tensors and labels are called', async (t) => {
  fc.assert(
    fc.property(fc.dictionary(fc.string(), fc.jsonValue({ noUnicodeString: false })), (spec) => {
      // No resource has these as a key: `<<` merges mappings in YAML 1.1.
      fc.pre(!/__proto__|"<<"/.test(JSON.stringify(spec)))
      const problem = problemOf(spec)
      if (problem !== undefined) throw new Error(problem)
    }),
    { numRuns: 500 },
  )
  t.equal(problemOf({ y: 'y', on: ['no', '0x1'] }), undefined)
})
