"""What a person should know about our entry in Hermes's settings. Part of the Ansible run, changes nothing.

All functions take plain values, as `hermes_config.plain` makes them, and return sentences.
"""

from __future__ import annotations

from ansible.module_utils.hermes_config import same


def mapping(values, key):
    """The mapping under a key, or an empty one."""
    return values[key] if isinstance(values.get(key), dict) else {}


def names(values, key):
    """The list of names under a key; a single name counts as a list of one."""
    value = values.get(key)
    return [str(item) for item in (value if isinstance(value, list) else [value] if value else [])]


def decided(entry, name):
    """What the user decided about our entry. It is kept."""
    said = []
    if entry.get("enabled") is False:
        said.append("%s is switched off (enabled: false) and was left so." % name)
    if entry.get("url"):
        said.append("%s has a url, which Hermes prefers to the command; it was left there." % name)
    for key in ("include", "exclude"):
        listed = names(mapping(entry, "tools"), key)
        if listed:
            said.append("%s keeps its list tools.%s: %s." % (name, key, ", ".join(listed)))
    return said


def hidden(values, name):
    """Settings that keep our tools from being shown. They are the user's and are never changed here.

    A platform's list that names any enabled MCP server is an allow-list for all of them.
    """
    said = []
    servers = mapping(values, "mcp_servers")
    others = {key for key in servers if key != name and mapping(servers, key).get("enabled") is not False}
    platforms = mapping(values, "platform_toolsets")
    for platform in platforms:
        listed = names(platforms, platform)
        where = "platform_toolsets.%s" % platform
        if "no_mcp" in listed:
            said.append("%s says no_mcp, so no MCP server is shown there." % where)
        elif others.intersection(listed) and name not in listed:
            said.append(
                "%s lists other MCP servers and not %s, so it is hidden there until you add it."
                % (where, name)
            )
    for toolset in (name, "mcp-%s" % name):
        if toolset in names(mapping(values, "agent"), "disabled_toolsets"):
            said.append("agent.disabled_toolsets lists %s, so its tools are not shown." % toolset)
    return said


def overruled(path, name, entry, wanted):
    """Leaves of our entry that the managed layer in `path` fixes to something else."""
    fixed = sorted(key for key, value in entry.items() if key in wanted and not same(value, wanted[key]))
    return ["%s fixes %s of %s and wins over this entry." % (path, ", ".join(fixed), name)] if fixed else []
