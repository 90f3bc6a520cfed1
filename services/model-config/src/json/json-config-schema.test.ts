import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Ajv } from 'ajv'
import t from 'tap'
import { normaliseModelConfig } from '../complete/normalise-model-config.ts'
import { parseModelConfig } from '../text/parse-model-config.ts'
import { jsonConfigSchema } from './json-config-schema.ts'
import { toJsonConfig } from './to-json-config.ts'

const REPOSITORY = join(import.meta.dirname, '../../../../model_repository')
const TEXTS = globSync('{.,.variants/**}/*/config.pbtxt', { cwd: REPOSITORY })
  .filter((path) => !path.includes('broken'))
  .map((path) => [path, readFileSync(join(REPOSITORY, path), 'utf8')] as const)

/** The schema without room for fields that it does not name. */
const CLOSED: object = JSON.parse(
  JSON.stringify(jsonConfigSchema()).replaceAll(
    '"properties"',
    '"additionalProperties":false,"properties"',
  ),
)

await t.test('it takes every configuration of the repository, as written and normalised', (t) => {
  const validate = new Ajv({ strict: false }).compile(CLOSED)
  t.ok(TEXTS.length > 50, String(TEXTS.length))
  for (const [path, text] of TEXTS) {
    const config = parseModelConfig(text, path)
    for (const one of [config, normaliseModelConfig(config)]) {
      t.ok(
        validate(JSON.parse(JSON.stringify(toJsonConfig(one)))),
        `${path}: ${JSON.stringify(validate.errors)}`,
      )
    }
  }
  t.end()
})

await t.test('it takes numbers that JSON has not, and refuses what no configuration says', (t) => {
  const validate = new Ajv({ strict: false }).compile(CLOSED)
  const text =
    'model_metrics { metric_control { histogram_options { buckets: [1.5, inf, -inf, nan] } } }'
  const config = toJsonConfig(parseModelConfig(text, 'config.pbtxt'))
  t.ok(validate(config), JSON.stringify(validate.errors))
  for (const wrong of [{ name: 5 }, { nmae: 'x' }, { input: {} }, { max_batch_size: 1.5 }]) {
    t.notOk(validate({ ...config, ...wrong }), JSON.stringify(wrong))
  }
  const { name: _, ...nameless } = config
  t.notOk(validate(nameless))
  t.end()
})
