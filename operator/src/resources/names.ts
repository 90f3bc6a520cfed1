import { createHash } from 'node:crypto'

/** Characters of a DNS label: Services and label values take no more. */
const LONGEST = 63
const HASH = 8

/**
 * Returns the name of a child: `<owner>-<role>`. An owner's name that is too long is cut and followed by a hash of the whole
 * name, so that different owners never share a child's name.
 */
export function childName(owner: string, role: string, longest = LONGEST): string {
  const name = `${owner}-${role}`
  if (name.length <= longest) return name
  const hash = createHash('sha256').update(name).digest('hex').slice(0, HASH)
  const kept = owner.slice(0, longest - role.length - HASH - 2).replace(/-+$/, '')
  return `${kept}-${hash}-${role}`
}
