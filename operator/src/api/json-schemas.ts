import { SITE } from '@tutti/errors'
import { z } from 'zod'
import { KINDS, VERSION } from './crds.ts'

/** Folder at which the files are published. Their addresses never change. */
const BASE = `${SITE}/schemas/${VERSION}`

/**
 * Builds JSON Schemas (draft 7) of manifests, for editors. Each kind has a schema. `manifest.json` chooses one by the document's
 * kind, for files with several documents. Rules that only CEL can express are left out.
 *
 * @returns texts by path from the root of the repository.
 */
export function buildJsonSchemas(): ReadonlyMap<string, string> {
  const byKind = KINDS.map(({ kind, manifest }) => {
    const schema = z.toJSONSchema(manifest, { target: 'draft-7', io: 'input' })
    return [kind, schema] as const
  })
  const files = byKind.map(([kind, { $schema, ...schema }]) => {
    const head = { $schema, $id: `${BASE}/${nameOf(kind)}`, title: `Tutti ${kind}` }
    return [pathOf(nameOf(kind)), toText({ ...head, ...schema })] as const
  })
  return new Map([...files, [pathOf('manifest.json'), toText(anyKind())]])
}

function anyKind(): object {
  const kinds = KINDS.map(({ kind }) => kind)
  return {
    $schema: 'http://json-schema.org/draft-07/schema#',
    $id: `${BASE}/manifest.json`,
    title: 'Tutti manifest',
    type: 'object',
    required: ['apiVersion', 'kind'],
    properties: { kind: { enum: kinds } },
    allOf: kinds.map((kind) => ({
      if: { properties: { kind: { const: kind } } },
      // oxlint-disable-next-line unicorn/no-thenable -- a keyword of JSON Schema
      then: { $ref: nameOf(kind) },
    })),
  }
}

function nameOf(kind: string): string {
  return `${kind.toLowerCase()}.json`
}

function pathOf(name: string): string {
  return `schemas/${VERSION}/${name}`
}

function toText(schema: object): string {
  return `${JSON.stringify(schema, undefined, 2)}\n`
}
