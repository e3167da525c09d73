"""What is wrong in a repository of fleet config or of blueprints, rule by rule. Pure: a tree goes in, findings come out."""
