import { ErrorResult } from '@tutti/chassis'
import { loadCommands } from '@tutti/command-line/program'
import { SITE } from '@tutti/errors'
import { KUBECTL_PROGRAM } from '@tutti/kubectl'
import { z } from 'zod'
import { COMMANDS } from './commands.ts'

/** Loads the schema of each result, by the name of its file. A command is in it by its `result` (command.ts). */
async function loadResults(): Promise<ReadonlyMap<string, z.ZodType>> {
  const named = [
    ...(await loadCommands(COMMANDS)).map(({ name, result }) => [name, result] as const),
    ...(await loadCommands(KUBECTL_PROGRAM.commands)).map(
      ({ name, result }) => [`kubectl-${name}`, result] as const,
    ),
    ['error', ErrorResult] as const,
  ]
  return new Map(
    named.flatMap(([name, result]) =>
      result === undefined ? [] : [[`cli-${name}.json`, result] as const],
    ),
  )
}

/**
 * Builds the JSON Schemas (draft 7) of the commands' results and errors. Later versions may add fields, so the schemas allow
 * unknown fields.
 *
 * @returns texts by path from the root of the repository.
 */
export async function buildResultSchemas(): Promise<ReadonlyMap<string, string>> {
  const files = [...(await loadResults())].map(([file, result]) => {
    const { $schema, title, ...schema } = z.toJSONSchema(result, {
      target: 'draft-7',
      io: 'input',
      unrepresentable: 'any',
      override: ({ jsonSchema }) => {
        delete jsonSchema.readOnly
        // Every integer in JavaScript has these bounds.
        if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum
        if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum
      },
    })
    const head = { $schema, $id: `${SITE}/schemas/${file}`, title }
    const text = JSON.stringify({ ...head, ...schema }, undefined, 2)
    return [`schemas/${file}`, `${text}\n`] as const
  })
  return new Map(files)
}
