import { createHash } from 'node:crypto'

/** Characters of a DNS label: Services and label values take no more. */
const LONGEST = 63
const HASH = 8

/**
 * The name of a child: `<owner>-<role>`. A name that would be too long is cut, and ends in a hash of the whole, so that
 * different owners never share one.
 */
export function childName(owner: string, role: string, longest = LONGEST): string {
  const name = `${owner}-${role}`
  if (name.length <= longest) return name
  const hash = createHash('sha256').update(name).digest('hex').slice(0, HASH)
  const kept = owner.slice(0, longest - role.length - HASH - 2).replace(/-+$/, '')
  return `${kept}-${hash}-${role}`
}
