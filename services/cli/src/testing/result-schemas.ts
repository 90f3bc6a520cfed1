import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Ajv, type ValidateFunction } from 'ajv'
import { z } from 'zod'

const ROOT = join(import.meta.dirname, '../../../..')
const Published = z.looseObject({ $id: z.string() })

/** Reads the committed schemas of results. */
export function openResultSchemas() {
  const ajv = new Ajv({ strict: false, formats: { uri: true } })
  for (const path of globSync('schemas/**/*.json', { cwd: ROOT })) {
    const text = readFileSync(join(ROOT, path), 'utf8')
    // Later versions may add fields. This one prints none that its schemas do not name.
    const closed = path.startsWith('schemas/cli-')
      ? text.replaceAll('"properties": {', '"additionalProperties": false, "properties": {')
      : text
    ajv.addSchema(Published.parse(JSON.parse(closed)))
  }
  const find = (name: string): ValidateFunction => {
    const found = ajv.getSchema(`https://tutti.dev/schemas/cli-${name}.json`)
    if (found === undefined) throw new Error(`there is no schemas/cli-${name}.json: npm run gen`)
    return found
  }
  return {
    /** Lists the faults of a result. @param name - name of the schema file, without `cli-` and `.json`. */
    problemsOf(name: string, result: unknown): readonly string[] {
      const validate = find(name)
      if (validate(result)) return []
      return (validate.errors ?? []).map((one) => `${one.instancePath} ${one.message}`)
    },
  }
}
