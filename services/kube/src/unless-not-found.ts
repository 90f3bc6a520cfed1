import { isNotFound } from './kube-error.ts'

/** Waits for a read. @returns undefined if the object does not exist. @throws any other error of the read. */
export async function unlessNotFound<T>(asked: Promise<T>): Promise<T | undefined> {
  try {
    return await asked
  } catch (error) {
    if (isNotFound(error)) return undefined
    throw error
  }
}
