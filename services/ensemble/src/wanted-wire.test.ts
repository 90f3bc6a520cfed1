import { normaliseModelConfig, parseModelConfig } from '@tutti/model-config'
import t from 'tap'
import { isNewer, parseWantedJson, toWantedJson, type WantedModel } from './wanted-wire.ts'

const config = normaliseModelConfig({
  ...parseModelConfig(
    'platform: "ensemble" ensemble_scheduling { step { model_name: "m" model_version: -1 } }',
    'config.pbtxt',
  ),
  name: 'e',
})
const plain = { name: 'm', at: 5, by: 'router-a', isLoaded: true, isExplicit: false }
const ensemble = {
  config,
  labels: { __proto__x: ['cat', 'dog'] },
  versions: [{ version: 1, revision: 'r' }],
  digest: 'd',
}

await t.test('what is wanted survives the way through JSON', async (t) => {
  const all: readonly WantedModel[] = [
    plain,
    { ...plain, isLoaded: false },
    { ...plain, config: '{}' },
    { ...plain, name: 'e', ensemble },
  ]
  for (const one of all) {
    const json: unknown = JSON.parse(JSON.stringify(toWantedJson(one)))
    t.strictSame(parseWantedJson(json), one)
  }
})

await t.test('an error names the field', async (t) => {
  const cases: readonly (readonly [string, unknown])[] = [
    ['', 5],
    ['name', { ...plain, name: 5 }],
    ['at', { ...plain, at: -1 }],
    [
      'ensemble.versions[0].version',
      { ...plain, ensemble: { ...ensemble, labels: [], versions: [{}] } },
    ],
    [
      'ensemble.config.max_batch_size',
      { ...plain, ensemble: { ...ensemble, labels: [], config: { max_batch_size: 'x' } } },
    ],
  ]
  for (const [field, json] of cases) {
    t.throws(() => parseWantedJson(json), {
      code: 'INVALID_ARGUMENT',
      reason: 'MALFORMED_MESSAGE',
      details: { field },
    })
  }
})

await t.test(
  'of two requests the later holds, of equal ones the same at every router',
  async (t) => {
    t.equal(isNewer(plain, undefined), true)
    t.equal(isNewer({ ...plain, at: 6 }, plain), true)
    t.equal(isNewer({ ...plain, at: 4, by: 'z' }, plain), false)
    t.equal(isNewer({ ...plain, by: 'router-b' }, plain), true)
    t.equal(isNewer(plain, plain), false)
  },
)
