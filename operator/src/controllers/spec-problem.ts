import { z } from 'zod'

/** What is wrong with a spec, in one line with the path of each field: the server let it in under another schema. */
export function toProblem({ issues }: Pick<z.ZodError, 'issues'>): string {
  return issues.map(toText).join('; ')
}

function toText({ path, message }: z.core.$ZodIssue): string {
  return path.length === 0 ? message : `${z.core.toDotPath(path)}: ${message}`
}
