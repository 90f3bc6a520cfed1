/** A model's directory as found in a model repository. Nothing of it has been checked yet. */
export interface RepositoryModel {
  /** Qualified, where names are unique only within a repository. */
  readonly name: string
  /** Absolute path of the directory that it stands in. */
  readonly repository: string
  /** Absolute path. */
  readonly directory: string
  /** Text of config.pbtxt, with what overrides it; absent if there is none. */
  readonly configText?: string
  /** Absolute path that messages name, whether the file exists or not. */
  readonly configPath: string
  /** Numeric version directories, ascending. */
  readonly versions: readonly number[]
  /** Why the directory cannot be used (name in two repositories, unreadable file); absent otherwise. */
  readonly error?: string
}
